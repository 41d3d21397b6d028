// Waits until a volume is no longer locked.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <string>

namespace terrace {

/// Returns an eventfd that becomes readable when no process has the volume at `path` locked any more. If the process
/// was killed, that is not when it ends but when the kernel has finished its last operation: until then bytes may still
/// be written to the file. The kernel reports this only to a blocking call, so the call is made on a separate thread,
/// which is left behind if the process ends first. Errors: `internal`, from the system.
result<unique_fd> watch_lock(const std::string& path);

} // namespace terrace
