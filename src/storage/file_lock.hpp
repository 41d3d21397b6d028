// The lock on a volume's file while it is in use.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

// The identity of this machine, part of a volume's owner.

/// The machine id of systemd: it persists across reboots and is unique per machine. Zeros if `path` does not
/// contain 32 hexadecimal digits, as in some containers: volumes are then distinguished by their group alone.
/// Reads a file.
std::array<uint8_t, 16> machine_identity(const std::string& path = "/etc/machine-id");

// Waits until a volume is no longer locked.

/// Returns an eventfd that becomes readable when no process has the volume at `path` locked any more. If the process
/// was killed, that is not when it ends but when the kernel has finished its last operation: until then bytes may still
/// be written to the file. The kernel reports this only to a blocking call, so the call is made on a separate thread,
/// which is left behind if the process ends first. Errors: `internal`, from the system.
result<unique_fd> watch_lock(const std::string& path);

enum class lock_kind { shared, exclusive };

/// Takes the lock without waiting; it is held until the last descriptor of this open file is closed. Error:
/// `busy`, with the process that holds it if the system reports one.
result<void> lock_file(const std::string& path, int fd, lock_kind kind);

/// The process that holds a lock on the file, such as "process 4711 (terraced)". Nullopt if unknown: there is
/// no lock, or its holder is in another PID namespace. `locks` is /proc/locks, or a text in its format.
std::optional<std::string> lock_holder(int fd, const std::string& locks = "/proc/locks");

} // namespace terrace
