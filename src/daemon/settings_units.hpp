// The notation of sizes, durations, rates and permissions in the configuration file.
#pragma once

#include "base/error.hpp"
#include "base/eviction_types.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace terrace {

/// "4096", "4096B", "64KiB", "1GiB", "2 TiB": whole numbers in powers of 1024. Errors: `bad_request`; decimal
/// units (MB, GB) are rejected as ambiguous.
result<uint64_t> parse_bytes(std::string_view text);

/// "250ms", "60s", "5m", "1h": a whole number and a unit. Errors: `bad_request`.
result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "0600", "660": octal, at most 0777. Errors: `bad_request`.
result<uint32_t> parse_permissions(std::string_view text);

/// An allocator's name, and for "paged" the size of its slots.
struct allocator_choice {
  std::string name;
  uint64_t slot_bytes = 0;
};

/// "size_class", "paged:4MiB". Errors: `bad_request`, for "paged" without a size, and another name with one.
result<allocator_choice> parse_allocator(std::string_view text);

/// "200MiB/s", "2TiB/day", "200MiB/s, 2TiB/day"; empty: no limit. Each at most once. Errors: `bad_request`; what is too little to
/// be meant, or too much, is one as well.
result<write_rates> parse_write_rates(std::string_view text);

/// Takes what the error of a value suggests, `; did you mean "4GiB"?`, out of its text, for the fix. Empty: it suggests nothing.
std::string take_suggestion(std::string& wrong);

/// A short text that parses to the same value.
std::string format_bytes(uint64_t bytes);
std::string format_duration(std::chrono::milliseconds duration);
std::string format_permissions(uint32_t mode);

} // namespace terrace
