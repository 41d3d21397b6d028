// Digests and tokens as people type them.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cli {

/// Two digits a byte, upper or lower case.
outcome<std::vector<uint8_t>> parse_hex(std::string_view text);

/// Digests one behind the other, as a request carries them.
struct digest_list {
  std::vector<uint8_t> bytes;
  uint8_t width = 0;
  size_t count() const { return width == 0 ? 0 : bytes.size() / width; }
};

/// Words between spaces, commas and line ends: all of one length of 16 to 64 digits.
outcome<digest_list> parse_digests(std::string_view text);

/// Words between spaces, commas, line ends and brackets (so a JSON array does too): numbers from 0 to 2^32 - 1.
outcome<std::vector<uint32_t>> parse_tokens(std::string_view text);

/// The text itself, or with "@FILE" that file's, with "@-" standard input's.
outcome<std::string> text_or_file(const std::string& argument);

} // namespace terrace::cli
