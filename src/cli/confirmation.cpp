#include "cli/confirmation.hpp"

#include <fmt/format.h>

namespace terrace::cli {

outcome<void> confirm(console& to, const std::string& what, bool given) {
  if (given)
    return {};
  if (!to.in_is_terminal)
    return bad_usage(what + "; nothing was changed. Use --yes, or answer on a terminal");
  fmt::print(to.err, "{}. Continue? Type yes: ", what);
  std::fflush(to.err);
  std::string answer;
  for (int c; (c = std::fgetc(to.in)) != EOF && c != '\n';)
    answer.push_back(static_cast<char>(c));
  if (answer != "yes")
    return failed("the answer was not yes; nothing was changed");
  return {};
}

} // namespace terrace::cli
