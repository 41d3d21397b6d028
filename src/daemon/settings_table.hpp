// The table of all options (options.def): name, notation, bounds and help of each, and whether it can change at run time.
#pragma once

#include "daemon/settings.hpp"

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace terrace {

/// How a value is written, see `option_types`.
enum class option_kind : uint8_t {
  flag,
  count,
  text,
  place,
  places,
  allocator,
  bytes,
  share,
  duration,
  permissions,
  ids,
  counts,
  names,
};

using option_ref = std::variant<bool*, uint32_t*, uint64_t*, std::string*, std::chrono::milliseconds*,
                                std::vector<uint32_t>*, std::vector<std::string>*, std::optional<uint64_t>*>;

/// The values that an option may have. What depends on other options is in `contradictions()` of its struct.
struct option_bounds {
  uint64_t low = 0, high = UINT64_MAX; ///< of numbers, bytes and milliseconds; of arrays: of each element
  uint64_t multiple = 1;
  bool zero = false; ///< 0 is valid, too
  size_t elements_low = 0, elements_high = SIZE_MAX;
  std::span<const std::string_view> (*names)() = nullptr; ///< the valid names
  std::string_view text;                                  ///< for readers, if the struct checks them

  constexpr option_bounds in(uint64_t unit) const {
    auto with = *this;
    with.multiple = unit;
    return with;
  }
  constexpr option_bounds or_zero() const {
    auto with = *this;
    with.zero = true;
    return with;
  }
  constexpr option_bounds of(uint64_t low_element, uint64_t high_element) const {
    auto with = *this;
    with.low = low_element;
    with.high = high_element;
    return with;
  }
};

struct option_spec {
  std::string_view section;
  std::string_view key;
  option_kind kind;
  option_ref (*at)(settings&,
                   size_t socket); ///< its place; `socket` matters only for [[listen]] and [[resp]]
  std::string_view unit;
  option_bounds bounds;
  bool at_run_time;      ///< SIGHUP applies it; otherwise it needs a restart
  std::string_view help; ///< a sentence
  std::string_view more; ///< for the documentation, in Markdown
};

/// In the order of options.def.
std::span<const option_spec> option_table();

struct option_section {
  std::string_view name;
  bool repeated = false; ///< [[name]]
  bool absent = false;   ///< there is none by default
  std::string_view help; ///< sentences, or empty
};
std::span<const option_section> option_sections();

/// An option of earlier versions.
struct former_option {
  std::string_view section, key;
  std::string_view instead; ///< what to do, for messages and documentation
};
std::span<const former_option> former_options();

/// How many of its sections there are.
size_t sections_of(const option_spec& spec, const settings& config);

/// "host.bytes", or "listen[1].path" for the second socket.
std::string option_name(const option_spec& spec, size_t socket);

/// The value as it would be written in the file.
std::string format_option(const option_spec& spec, const settings& from, size_t socket);

/// The default as it would be written in the file: "auto" where it depends on the environment.
std::string format_default(const option_spec& spec);

/// "1 to 64", "always, seen_twice"; empty for any value of the kind.
std::string format_bounds(const option_spec& spec);

/// The problems of one value by itself.
std::vector<option_problem> check_option(const option_spec& spec, const settings& from, size_t socket);

/// A description of valid values of this kind for messages: "a size such as \"64MiB\" ...".
std::string_view describe(option_kind kind);

/// config/terraced.toml: every option with its default below its help.
std::string commented_configuration();

/// The table of a section, or of the options that went, as docs/configuration.md and CHANGELOG.md have it.
std::string documented_options(std::string_view section);
std::string documented_former_options();

/// All these tables, each below the heading of its section: "## [host]", "## Options that went".
std::string option_reference();

} // namespace terrace
