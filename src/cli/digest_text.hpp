// Digests and tokens on the command line.
#pragma once

#include "base/digest.hpp"
#include "cli/failure.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cli {

/// Parses two digits per byte, upper or lower case.
outcome<std::vector<uint8_t>> parse_hex(std::string_view text);

/// Returns the number of bytes with which a digest was sent. The tiers keep narrower digests with trailing
/// zeros, so this is the smallest width of a hash function behind which everything is zero. A digest of 32
/// bytes looks narrower with a chance of 2^-64.
size_t width_of(const digest& d);
/// Returns these bytes as lower-case digits.
std::string digest_text(const digest& d);

/// Formats an id of 16 bytes as lower-case digits.
std::string id_text(std::span<const uint8_t, 16> id);
/// The failure says that `name` was expected.
outcome<std::array<uint8_t, 16>> parse_id(const char* name, std::string_view text);

/// Digests without gaps between them, as in a request.
struct digest_list {
  std::vector<uint8_t> bytes;
  uint8_t width = 0;
  size_t count() const { return width == 0 ? 0 : bytes.size() / width; }
};

/// Parses words separated by spaces, commas and line ends, all of one length of 16 to 64 digits.
outcome<digest_list> parse_digests(std::string_view text);

/// Parses numbers from 0 to 2^32 - 1, separated by spaces, commas, line ends and brackets (such as a JSON
/// array).
outcome<std::vector<uint32_t>> parse_tokens(std::string_view text);

/// Returns the text itself; for "@FILE" the contents of the file, for "@-" standard input.
outcome<std::string> text_or_file(const std::string& argument);

} // namespace terrace::cli
