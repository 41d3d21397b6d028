#include "storage/space_tokens.hpp"

#include "base/digest.hpp"
#include "storage/durable_record.hpp"

#include <optional>
#include <sstream>

namespace terrace {

namespace {

constexpr std::string_view title = "terrace epoch tokens 1";

/// Nullopt: it is damaged, or of another version.
std::optional<space_tokens> decode_tokens(const std::string& text, const std::string& name) {
  const auto whole = without_checksum(text);
  if (!whole)
    return std::nullopt;
  std::istringstream lines(*whole);
  std::string line;
  if (!std::getline(lines, line) || line != title || !std::getline(lines, line) || line != "store " + name)
    return std::nullopt;
  space_tokens tokens;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string space;
    uint64_t token = 0;
    space_fingerprint fingerprint{};
    if (!(words >> space >> token))
      return std::nullopt;
    if (space == "all")
      tokens.all = token;
    else if (parse_hex(space, fingerprint))
      tokens.of[fingerprint] = token;
    else
      return std::nullopt;
  }
  return tokens;
}

} // namespace

space_tokens read_tokens(const std::string& folder, const std::string& name) {
  const space_tokens none_known{.all = space_tokens::unreadable, .of = {}};
  auto text = read_record(record_path(folder, "tokens", name), "reading the tokens of a remote store");
  if (!text)
    return none_known;
  if (!*text)
    return {};
  return decode_tokens(**text, name).value_or(none_known);
}

result<void> write_tokens(const std::string& folder, const std::string& name, const space_tokens& tokens) {
  auto locked = lock_state_folder(folder);
  if (!locked)
    return tl::unexpected(locked.error());
  std::string text = std::string(title) + "\nstore " + name + "\nall " + std::to_string(tokens.all) + "\n";
  for (const auto& [space, token] : tokens.of)
    text += to_hex(digest{space}) + " " + std::to_string(token) + "\n";
  return replace_record(record_path(folder, "tokens", name), with_checksum(std::move(text)), *locked);
}

} // namespace terrace
