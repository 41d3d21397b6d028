// A digest identifies a whole prefix: it is chained to its parent.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace terrace {

/// A digest has at most 32 bytes. Shorter ones (8 to 31 bytes) are padded with trailing zeros; the width is a
/// property of the space, so two digests of one space compare bytewise.
struct digest {
  static constexpr size_t max_size = 32;
  static constexpr size_t min_size = 8;

  std::array<uint8_t, max_size> bytes{};

  /// Copies at most the first 32 bytes of `raw`.
  static digest from(std::span<const uint8_t> raw) {
    digest d;
    std::memcpy(d.bytes.data(), raw.data(), raw.size() < max_size ? raw.size() : max_size);
    return d;
  }

  friend auto operator<=>(const digest&, const digest&) = default;
  friend bool operator==(const digest& a, const digest& b) { return same_bytes(a.bytes, b.bytes); }

  /// Compares words: calling memcmp per looked-up key costs more than the comparison itself.
  static bool same_bytes(const std::array<uint8_t, max_size>& a, const std::array<uint8_t, max_size>& b) {
    uint64_t x[max_size / sizeof(uint64_t)], y[max_size / sizeof(uint64_t)];
    std::memcpy(x, a.data(), sizeof x);
    std::memcpy(y, b.data(), sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
  }
};

/// Lower-case hexadecimal.
inline std::string to_hex(std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

/// Hexadecimal of the first `width` bytes.
inline std::string to_hex(const digest& d, size_t width = digest::max_size) {
  return to_hex(std::span<const uint8_t>(d.bytes).first(width));
}

} // namespace terrace
