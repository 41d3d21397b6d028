// Which machine this is, for the owner that a volume names.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace terrace {

/// The machine id of systemd: it survives reboots, and two machines never share one. Zeros when `path` does not hold
/// 32 hexadecimal digits, as in some containers: volumes are then told apart by their group alone. Reads a file.
std::array<uint8_t, 16> machine_identity(const std::string& path = "/etc/machine-id");

} // namespace terrace
