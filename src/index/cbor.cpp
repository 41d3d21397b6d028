#include "index/cbor.hpp"

namespace terrace::cbor {

namespace {

enum major : uint8_t {
  unsigned_integer = 0,
  negative_integer = 1,
  byte_string = 2,
  text_string = 3,
  array = 4
};

/// The shortest head for the argument, big-endian.
void put_head(buffer& out, major type, uint64_t argument) {
  auto first = static_cast<uint8_t>(type << 5);
  int size = argument < 24             ? 0
             : argument <= 0xff        ? 1
             : argument <= 0xffff      ? 2
             : argument <= 0xffff'ffff ? 4
                                       : 8;
  switch (size) {
    case 0: out.push_back(static_cast<uint8_t>(first | argument)); return;
    case 1: out.push_back(first | 24); break;
    case 2: out.push_back(first | 25); break;
    case 4: out.push_back(first | 26); break;
    default: out.push_back(first | 27);
  }
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8)
    out.push_back(static_cast<uint8_t>(argument >> shift));
}

} // namespace

void put_array(buffer& out, uint64_t count) { put_head(out, array, count); }

void put_integer(buffer& out, int64_t number) {
  if (number >= 0)
    put_head(out, unsigned_integer, static_cast<uint64_t>(number));
  else
    put_head(out, negative_integer, ~static_cast<uint64_t>(number)); // -1 - number
}

void put_bytes(buffer& out, std::span<const uint8_t> bytes) {
  put_head(out, byte_string, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_text(buffer& out, std::string_view text) {
  put_head(out, text_string, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

void put_null(buffer& out) { out.push_back(0xf6); }

void put_numbers(buffer& out, std::span<const uint32_t> numbers) {
  put_array(out, numbers.size());
  size_t used = out.size();
  out.resize(used + numbers.size() * 5); // the longest encoding of 32 bits
  uint8_t* at = out.data() + used;
  for (uint32_t n : numbers) {
    if (n < 24) {
      *at++ = static_cast<uint8_t>(n);
    } else if (n <= 0xff) {
      *at++ = 24;
      *at++ = static_cast<uint8_t>(n);
    } else if (n <= 0xffff) {
      *at++ = 25;
      *at++ = static_cast<uint8_t>(n >> 8);
      *at++ = static_cast<uint8_t>(n);
    } else {
      *at++ = 26;
      *at++ = static_cast<uint8_t>(n >> 24);
      *at++ = static_cast<uint8_t>(n >> 16);
      *at++ = static_cast<uint8_t>(n >> 8);
      *at++ = static_cast<uint8_t>(n);
    }
  }
  out.resize(static_cast<size_t>(at - out.data()));
}

} // namespace terrace::cbor
