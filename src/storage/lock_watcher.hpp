// Waits for the end of whoever has a volume open.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <string>

namespace terrace {

/// An eventfd that becomes readable when nobody has the volume at `path` locked any more. That is not when a process ends
/// that was killed, but when the kernel is done with the last operation that it left behind: until then bytes may still
/// arrive in the file. The kernel offers no other way to hear of it than to block, so a thread of its own does, and stays
/// behind when the process ends first. Errors: `internal`, the system's.
result<unique_fd> watch_lock(const std::string& path);

} // namespace terrace
