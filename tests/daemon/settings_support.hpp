// An environment that does not depend on who runs the tests.
#pragma once

#include "daemon/settings_toml.hpp"

namespace terrace {

inline environment test_environment() {
  environment env;
  env.uid = 1000;
  env.processors = 4;
  env.xdg_runtime_dir = "/run/user/1000";
  env.home = "/home/engine";
  return env;
}

inline parsed_settings parse(std::string_view text) {
  return parse_settings(text, "test.toml", test_environment());
}

/// The rendered problems of a text, empty when there are none.
inline std::string problems_of(std::string_view text) {
  auto parsed = parse(text);
  return parsed ? "" : render_problems(parsed.error());
}

} // namespace terrace
