// The parser of the configuration file: strict, and reports all mistakes at once.
#pragma once

#include "daemon/settings.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// A mistake in a file. Rendered as `file:line: wrong; expected: ...; fix: ...`.
struct settings_problem {
  std::string file;
  uint32_t line = 0; ///< from 1; 0 if the mistake has no line (the file cannot be read)
  std::string wrong;
  std::string expected;
  std::string fix;
  friend bool operator==(const settings_problem&, const settings_problem&) = default;
};

using parsed_settings = tl::expected<settings, std::vector<settings_problem>>;

/// The maximum size of the text.
constexpr size_t settings_text_max = 1 << 20;

/// Parses and validates `text`. Returns the settings, with all "auto" values resolved, or all mistakes in the
/// order of their lines: unknown sections and keys, wrong types, values out of range, inconsistencies. Only
/// an error in TOML syntax hides later mistakes. `filename` is used in messages.
parsed_settings parse_settings(std::string_view text, std::string_view filename, const environment& env);

/// The parser has understood this much of a file with mistakes.
struct partial_settings {
  settings with; ///< with mistakes, or their defaults, where `wrong` names them
  std::vector<std::string>
      wrong; ///< sections and options, without the number of a section: "listen", "host.bytes"
};

/// Reads and parses the file. A file with nothing but white space is a mistake: an editor that is saving it, or a full
/// disk, truncated it. Blocks: call it before the actors run, or from a detached one. `partial`: gets the rest of a file with
/// mistakes, unless nothing of it was understood; may be null.
parsed_settings load_settings(const std::string& path, const environment& env,
                              std::optional<partial_settings>* partial = nullptr);

/// Whether the file asks for `daemon.log_json`, also if it has mistakes elsewhere.
bool asks_for_json_log(const std::string& path);

/// One problem per line, each with a newline.
std::string render_problems(const std::vector<settings_problem>& problems);

} // namespace terrace
