// Helpers that tests of on-disk structures share.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace terrace {

inline std::string hex_of(std::span<const std::byte> bytes, size_t from, size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : bytes.subspan(from, count)) {
    text.push_back(digits[std::to_integer<unsigned>(b) >> 4]);
    text.push_back(digits[std::to_integer<unsigned>(b) & 15]);
  }
  return text;
}

} // namespace terrace
