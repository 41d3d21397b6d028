// Text for people: that of clients, checked to be UTF-8 and with control characters escaped, counts and sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace terrace {

/// A character at the beginning of `text`. `bytes` is 0 if the bytes there are not UTF-8 (RFC 3629: no
/// overlong forms, no surrogates, at most U+10FFFF).
struct utf8_character {
  char32_t code = 0;
  size_t bytes = 0;
};
utf8_character first_character(std::string_view text);

/// Pure; the empty text is valid.
bool is_utf8(std::string_view text);

/// Returns the text with everything escaped that could move a terminal's cursor, begin another line or change
/// the order of characters: control characters, line and paragraph separators, marks of direction, and bytes
/// that are not UTF-8. The backslash is not escaped, so the result is for people, not for programs.
std::string printable(std::string_view text);

// Counts and sizes, in log lines, errors and the output of commands.

/// "12,031".
std::string format_count(uint64_t count);

/// "client" for a count of 1, otherwise "clients".
std::string noun_for(uint64_t count, const std::string& noun);

/// "1 client", "12,031 clients".
std::string format_counted(uint64_t count, const std::string& noun);

/// "0 B", "999 B", "1.50 KiB", "12.3 GiB".
std::string readable_bytes(uint64_t bytes);

/// Three significant digits: "1.50", "12.3", "1023".
std::string three_digits(double value);

/// "64.0 MiB instead of 128 MiB", with `between` " instead of ". Sizes that read the same are written in bytes.
std::string readable_change(uint64_t one, std::string_view between, uint64_t other);

} // namespace terrace
