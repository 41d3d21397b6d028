// Confirmation before destructive actions.
#pragma once

#include "cli/console.hpp"
#include "cli/failure.hpp"

#include <string>

namespace terrace::cli {

/// Shows what will happen and reads a line from a terminal; only "yes" continues. With `given` (--yes)
/// nothing is asked. Without a terminal, or with another answer, returns a failure, and nothing may be
/// changed.
outcome<void> confirm(console& to, const std::string& what, bool given);

} // namespace terrace::cli
