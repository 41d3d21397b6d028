// The table of all options: name and notation in the file, and whether the option can change at run time.
//
// To add an option: a member with its default in settings.hpp, its bounds in that struct's validate(), a line
// in this table. Tests then require its lines in config/terraced.toml and docs/configuration.md.
#pragma once

#include "daemon/settings.hpp"

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace terrace {

enum class option_kind : uint8_t {
  flag,        ///< true or false
  count,       ///< a whole number
  text,        ///< a string
  place,       ///< a path; "auto": the default from the environment
  bytes,       ///< a whole number, or a string such as "64MiB"
  share,       ///< bytes, or "auto" for an equal part
  duration,    ///< a string such as "60s"
  permissions, ///< a string such as "0600"
  ids,         ///< an array of user or group ids
  counts,      ///< an array of whole numbers
  names,       ///< an array of strings
};

using option_ref = std::variant<bool*, uint32_t*, uint64_t*, std::string*, std::chrono::milliseconds*,
                                std::vector<uint32_t>*, std::vector<std::string>*, std::optional<uint64_t>*>;

struct option_spec {
  std::string_view section;
  std::string_view key;
  option_kind kind;
  bool at_run_time;                           ///< SIGHUP applies it; otherwise it needs a restart
  option_ref (*at)(settings&, size_t socket); ///< its place; `socket` matters only for [[listen]]
};

/// In the order of the sections in config/terraced.toml.
std::span<const option_spec> option_table();

/// The options of [[resp]], of which there is no section by default; `socket` is its number.
std::span<const option_spec> door_table();

/// The names of the sections, each once.
std::span<const std::string_view> section_names();

/// "host.bytes", or "listen[1].path" for the second socket.
std::string option_name(const option_spec& spec, size_t socket);

/// The value as it would be written in the file.
std::string format_option(const option_spec& spec, const settings& from, size_t socket);

/// A description of valid values of this kind for messages: "a size such as \"64MiB\" ...".
std::string_view describe(option_kind kind);

} // namespace terrace
