#include "base/readable_bytes.hpp"

#include <array>
#include <cstdio>

namespace terrace {

std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 400> text; // of the largest number
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<size_t>(length)};
}

std::string readable_bytes(uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + units[unit];
}

std::string readable_change(uint64_t one, std::string_view between, uint64_t other) {
  std::string first = readable_bytes(one), second = readable_bytes(other);
  if (first == second && one != other) {
    first = std::to_string(one) + " bytes";
    second = std::to_string(other) + " bytes";
  }
  return first + std::string(between) + second;
}

} // namespace terrace
