#include "base/printable.hpp"

#include <array>
#include <cstdio>

namespace terrace {

namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

bool acts(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) // controls
         || c == 0x2028 || c == 0x2029       // separators of lines and paragraphs
         || c == 0x200e || c == 0x200f       // marks of direction
         || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(const char* format, uint32_t code) {
  char text[16];
  int length = std::snprintf(text, sizeof text, format, code);
  return {text, static_cast<size_t>(length)};
}

} // namespace

utf8_character first_character(std::string_view text) {
  if (text.empty())
    return {};
  uint8_t lead = byte_at(text, 0);
  if (lead < 0x80)
    return {lead, 1};
  size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes)
    return {};
  char32_t code = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80)
      return {};
    code = code << 6 | (byte_at(text, i) & 0x3fU);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return {};
  return {code, bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    size_t bytes = first_character(text).bytes;
    if (bytes == 0)
      return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    auto [code, bytes] = first_character(text);
    if (bytes == 0)
      shown += escaped("\\x%02x", byte_at(text, 0));
    else if (!acts(code))
      shown += text.substr(0, bytes);
    else if (code < 0x80)
      shown += escaped("\\x%02x", code);
    else
      shown += escaped("\\u%04x", code);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

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

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string noun_for(uint64_t count, const std::string& noun) { return noun + (count == 1 ? "" : "s"); }

std::string format_counted(uint64_t count, const std::string& noun) {
  return format_count(count) + " " + noun_for(count, noun);
}

} // namespace terrace
