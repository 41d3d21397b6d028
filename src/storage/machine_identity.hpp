// The identity of this machine, part of a volume's owner.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace terrace {

/// The machine id of systemd: it persists across reboots and is unique per machine. Zeros if `path` does not
/// contain 32 hexadecimal digits, as in some containers: volumes are then distinguished by their group alone.
/// Reads a file.
std::array<uint8_t, 16> machine_identity(const std::string& path = "/etc/machine-id");

} // namespace terrace
