#include "storage/state_records.hpp"

#include "base/digest.hpp"
#include "storage/volume_device.hpp"

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sstream>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

namespace terrace {

namespace {

constexpr std::string_view checksum_line = "checksum ";

std::string hex_of(uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, value);
  return text.data();
}

/// Ignores errors, which show when the folder is opened.
void make_durably(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::exists(folder, failed) || !folder.has_relative_path())
    return;
  make_durably(folder.parent_path());
  std::filesystem::create_directory(folder, failed);
  if (unique_fd parent(::open(folder.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); parent)
    ::fsync(parent.get());
}

result<void> write_all(const std::string& path, const std::string& text) {
  unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd)
    return fail_system(path, "opening", errno);
  for (size_t written = 0; written < text.size();) {
    ssize_t done = ::write(fd.get(), text.data() + written, text.size() - written);
    if (done < 0 && errno != EINTR)
      return fail_system(path, "writing", errno);
    written += done > 0 ? static_cast<size_t>(done) : 0;
  }
  if (::fsync(fd.get()) != 0)
    return fail_system(path, "syncing", errno);
  return {};
}

std::string checksum_of(std::string_view text) { return hex_of(XXH3_64bits(text.data(), text.size())); }

} // namespace

result<unique_fd> lock_state_folder(const std::string& folder) {
  if (folder.empty())
    return fail(errc::unsupported, "this daemon has no state directory");
  make_durably(folder);
  unique_fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    return fail_system(folder, "opening the state directory", errno);
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return fail_system(folder, "locking the state directory", errno);
  return fd;
}

std::string record_path(const std::string& folder, std::string_view kind, std::string_view name) {
  return folder + "/" + std::string(kind) + "-" + checksum_of(name);
}

result<std::optional<std::string>> read_record(const std::string& path, const std::string& doing) {
  unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR))
    return std::optional<std::string>();
  if (!fd)
    return fail_system(path, doing.c_str(), errno);
  std::string text(record_bytes_max, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fail_system(path, doing.c_str(), errno);
    if (got == 0)
      break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return std::optional(std::move(text));
}

result<void> replace_record(const std::string& path, const std::string& text, const unique_fd& folder) {
  if (text.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return fail_system(path, "removing", errno);
  } else {
    std::string next = path + ".new";
    if (auto written = write_all(next, text); !written)
      return written;
    if (::rename(next.c_str(), path.c_str()) != 0)
      return fail_system(path, "replacing", errno);
  }
  if (::fsync(folder.get()) != 0)
    return fail_system(path, "syncing its folder", errno);
  return {};
}

std::string with_checksum(std::string text) {
  const std::string sum = checksum_of(text);
  return std::move(text) + std::string(checksum_line) + sum + "\n";
}

std::optional<std::string> without_checksum(const std::string& text) {
  const size_t sum = text.rfind(checksum_line);
  if (sum == std::string::npos ||
      std::string_view(text).substr(sum + checksum_line.size()) != checksum_of({text.data(), sum}) + "\n")
    return std::nullopt;
  return text.substr(0, sum);
}

bool parse_hex(std::string_view text, std::span<uint8_t> bytes) {
  if (text.size() != 2 * bytes.size())
    return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* end = text.data() + 2 * i + 2;
    if (auto read = std::from_chars(end - 2, end, bytes[i], 16); read.ec != std::errc() || read.ptr != end)
      return false;
  }
  return true;
}

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
