// Sizes as people read them, in log lines, errors and the output of commands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace terrace {

/// "0 B", "999 B", "1.50 KiB", "12.3 GiB".
std::string readable_bytes(uint64_t bytes);

/// Three significant digits: "1.50", "12.3", "1023".
std::string three_digits(double value);

/// "64.0 MiB instead of 128 MiB", with `between` " instead of ". Sizes that read the same are written in bytes.
std::string readable_change(uint64_t one, std::string_view between, uint64_t other);

} // namespace terrace
