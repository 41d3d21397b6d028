// Any text must end in valid settings or in problems that can be printed; never in a crash, never in an exception.
// The first byte chooses: the rest is the file itself, or picks lines of known options with odd values, which reaches
// behind TOML's syntax at once.
#include "daemon/settings.hpp"
#include "daemon/settings_table.hpp"
#include "daemon/settings_toml.hpp"

#include <cstdlib>

using namespace terrace;

namespace {

const environment& fixed_environment() {
  static const environment env = [] {
    environment e;
    e.uid = 1000;
    e.xdg_runtime_dir = "/run/user/1000";
    e.home = "/home/engine";
    return e;
  }();
  return env;
}

void require(bool holds) {
  if (!holds)
    std::abort();
}

constexpr std::string_view values[] = {"0",
                                       "1",
                                       "-1",
                                       "4096",
                                       "1048576",
                                       "2097152",
                                       "9223372036854775807",
                                       "1.5",
                                       "true",
                                       "false",
                                       "[]",
                                       "[0, 1000]",
                                       "[-1]",
                                       "[\"root\"]",
                                       "{}",
                                       "{a = 1}",
                                       "\"\"",
                                       "\"auto\"",
                                       "\"0660\"",
                                       "\"9999\"",
                                       "\"4KiB\"",
                                       "\"2MiB\"",
                                       "\"3MiB\"",
                                       "\"1GiB\"",
                                       "\"16777215TiB\"",
                                       "\"1GB\"",
                                       "\"10s\"",
                                       "\"1h\"",
                                       "\"1ms\"",
                                       "\"lru\"",
                                       "\"fifo\"",
                                       "\"paged\"",
                                       "\"paged:4KiB\"",
                                       "\"free_list\"",
                                       "\"debug\"",
                                       "\"/a\"",
                                       "\"/b\"",
                                       "\"a\"",
                                       "\"b\"",
                                       "\"\\u0000\"",
                                       "\"127.0.0.1:0\"",
                                       "1979-05-27",
                                       "inf"};

/// Each pair of bytes is a line: an option with a value, or the heading of a section.
std::string compose(std::span<const uint8_t> choices) {
  std::string text;
  std::string_view section;
  for (size_t i = 0; i + 1 < choices.size(); i += 2) {
    const auto& spec = option_table()[choices[i] % option_table().size()];
    // A socket's heading may come again, and begins another socket; that of another section must not.
    const bool repeated = spec.section == "listen" || spec.section == "resp";
    if (spec.section != section || (repeated && choices[i + 1] > 200)) {
      section = spec.section;
      bool known = text.find("[" + std::string(section) + "]\n") != std::string::npos;
      if (repeated)
        text += "[[" + std::string(section) + "]]\n";
      else if (!known)
        text += "[" + std::string(section) + "]\n";
      else
        section = {};
    }
    if (!section.empty())
      text += std::string(spec.key) + " = " + std::string(values[choices[i + 1] % std::size(values)]) + "\n";
  }
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  std::string text = data[0] % 2 ? compose({data + 1, size - 1}) : std::string(data + 1, data + size);
  auto parsed = parse_settings(text, "fuzz.toml", fixed_environment());
  if (!parsed) {
    require(!parsed.error().empty());
    for (char c : render_problems(parsed.error()))
      require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    return 0;
  }
  require(parsed->validate().empty());
  uint64_t host = 0;
  uint64_t disk = 0;
  for (const auto& group : parsed->groups()) {
    require(group.host_bytes > 0);
    host += group.host_bytes;
    disk += group.disk_bytes;
  }
  require(host <= parsed->host.bytes);
  require(disk <= parsed->disk.bytes);
  auto defaults = default_settings(fixed_environment());
  auto merged = apply_at_run_time(defaults, *parsed);
  for (const auto& change : changes_at_run_time(merged, *parsed))
    require(!change.at_run_time);
  return 0;
}
