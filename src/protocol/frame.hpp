// A frame: 16 bytes of header, a FlatBuffer, zeros up to a multiple of 8. docs/protocol.md specifies the
// bytes.
#pragma once

#include "protocol/descriptors.hpp"
#include "protocol/kinds.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace terrace::protocol {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and read in place");

/// The header on the wire. It has been part of the protocol since version 1.
struct frame_header {
  uint32_t length = 0; ///< length of the whole frame: header, body and padding; a multiple of 8
  protocol::kind kind{};
  uint16_t fd_count = 0;   ///< descriptors attached to the frame's first byte
  uint64_t request_id = 0; ///< the client chooses it; the answer has the same
};

static_assert(sizeof(frame_header) == header_bytes);
static_assert(offsetof(frame_header, length) == 0);
static_assert(offsetof(frame_header, kind) == 4);
static_assert(offsetof(frame_header, fd_count) == 6);
static_assert(offsetof(frame_header, request_id) == 8);
static_assert(std::is_trivially_copyable_v<frame_header>);

/// `from` has at least `header_bytes` bytes.
inline frame_header read_header(const uint8_t* from) {
  frame_header header;
  std::memcpy(&header, from, sizeof header);
  return header;
}

inline std::array<uint8_t, header_bytes> write_header(const frame_header& header) {
  return std::bit_cast<std::array<uint8_t, header_bytes>>(header);
}

/// A received frame. `body` points into the decoder's buffer (for its lifetime see frame_decoder.hpp) and
/// includes the padding, which FlatBuffers ignore; it is not verified yet (see verify.hpp).
struct frame {
  protocol::kind kind{};
  uint64_t request_id = 0;
  std::span<const uint8_t> body;
  descriptor_list descriptors; ///< as many as the header's fd_count
};

} // namespace terrace::protocol
