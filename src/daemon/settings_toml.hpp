// The configuration file: strict, and patient enough to name every mistake at once.
#pragma once

#include "daemon/settings.hpp"

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// A mistake in a file. Rendered as `file:line: wrong; expected: ...; fix: ...`.
struct settings_problem {
  std::string file;
  uint32_t line = 0; ///< from 1; 0 when the mistake has no line (the file cannot be read)
  std::string wrong;
  std::string expected;
  std::string fix;
  friend bool operator==(const settings_problem&, const settings_problem&) = default;
};

using parsed_settings = tl::expected<settings, std::vector<settings_problem>>;

/// At most this much text is looked at.
constexpr size_t settings_text_max = 1 << 20;

/// The settings that `text` describes, validated, with every place resolved; or all its mistakes, in the
/// order of their lines: unknown sections and keys, wrong types, values out of range, contradictions. Only a
/// mistake in TOML's own syntax hides what follows it. `filename` is for the messages.
parsed_settings parse_settings(std::string_view text, std::string_view filename, const environment& env);

/// Reads the file and parses it. Blocks: call it before the actors run, or from a detached one.
parsed_settings load_settings(const std::string& path, const environment& env);

/// One problem a line, each line ended.
std::string render_problems(const std::vector<settings_problem>& problems);

} // namespace terrace
