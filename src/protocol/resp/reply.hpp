// Appends replies in both versions of the protocol to a text.
#pragma once

#include "base/error.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace terrace::resp {

enum class version : uint8_t { resp2 = 2, resp3 = 3 };

inline void append_number(std::string& to, char mark, uint64_t value) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  to.push_back(mark);
  to.append(digits, end);
  to.append("\r\n");
}

inline void append_simple(std::string& to, std::string_view text) {
  to.push_back('+');
  to.append(text);
  to.append("\r\n");
}

/// Begins a value of `bytes`; its bytes and `end_of_value` follow.
inline void append_value_head(std::string& to, uint64_t bytes) { append_number(to, '$', bytes); }
constexpr std::string_view end_of_value = "\r\n";

inline void append_value(std::string& to, std::string_view bytes) {
  append_value_head(to, bytes.size());
  to.append(bytes);
  to.append(end_of_value);
}

inline void append_integer(std::string& to, uint64_t value) { append_number(to, ':', value); }
inline void append_array_head(std::string& to, uint64_t elements) { append_number(to, '*', elements); }

/// Begins a map of `pairs`; its keys and values follow one after the other. It is an array where the version
/// has no maps.
inline void append_map_head(std::string& to, version in, uint64_t pairs) {
  if (in == version::resp3)
    append_number(to, '%', pairs);
  else
    append_number(to, '*', 2 * pairs);
}

inline void append_null(std::string& to, version in) {
  to.append(in == version::resp3 ? "_\r\n" : "$-1\r\n");
}

/// `code` is the first word, by which clients tell errors apart. A text from a client may contain anything.
void append_error(std::string& to, std::string_view code, std::string_view text);

/// Appends an error with the word for the error of a request.
void append_failure(std::string& to, const error& why);

} // namespace terrace::resp
