// Formatting and parsing of numbers with units.
#pragma once

#include "base/printable.hpp"
#include "cli/failure.hpp"

#include <cstdint>
#include <string>

namespace terrace::cli {

/// Bytes per second in powers of ten: "3.42 GB/s".
std::string format_rate(double bytes_per_second);

/// "0 s", "870 ns", "47.9 us", "3.42 ms", "1.50 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double nanoseconds);

/// "1 of 1 chunk", "3 of 12,031 chunks".
std::string format_part(uint64_t part, uint64_t whole, const std::string& noun);

/// Returns 0 if `whole` is 0.
inline double share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// "36.6 %".
std::string format_ratio(double ratio);

/// Parses "4096", "64KiB", "1.5 GiB". Powers of ten ("10GB") are refused, as in the daemon's configuration. The failure says
/// what was expected, and what may have been meant.
outcome<uint64_t> parse_bytes(const std::string& text);

} // namespace terrace::cli
