// Compresses values that consist of 16-bit floats.
//
//   value_compressor zstd;                       // memory of zstd, for any number of values
//   value_packing packing(zstd, payload, into);  // `into` has the size of `payload`
//   while (!packing.done()) packing.advance();
//   if (packing.packed_bytes() != 0) ...         // 0: the value does not become a sixteenth smaller
//   ...
//   value_unpacking unpacking(zstd, memory, packed_bytes);   // expands the bytes where they are
//   while (!unpacking.done()) unpacking.advance();
//   if (unpacking.succeeded()) ...               // before that, nobody uses a byte of them
//
// Each float has a low byte, which is as good as random, and a high byte with the sign and most of the exponent, which is not. Only the
// high bytes are compressed, by zstd at level 1: more finds nothing more in real KV. The payload is taken in pieces of 128 KiB, the last
// one shorter. All numbers are little-endian:
//
//   for each piece, 4 bytes: the bytes F of its frame
//   for each piece of n bytes: the low byte of each float, and the last byte if n is odd: n - n / 2 bytes
//                              a frame of zstd (RFC 8878) with the n / 2 high bytes: F bytes
//
// Pieces are expanded from the last to the first. No piece begins behind its place in the payload (but for the first), so a piece never
// covers those before it, and two pieces of memory beside the payload suffice. A value for which that does not hold is not compressed.
//
// Whoever unpacks has verified the bytes: the decoder withstands any bytes, but does not find damage. Pure, one thread.
#pragma once

#include "index/space_spec.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace terrace::remote {

/// Returns true if the objects of this pool consist of 16-bit floats: their tensors, or the space if the pool declares none.
bool consists_of_half_floats(const space_spec& space, uint16_t pool);

/// Memory for values that are compressed or expanded, one piece at a time: about 1 MiB, from the first of them on.
class value_compressor {
 public:
  static constexpr size_t piece_bytes = 128 << 10;
  static constexpr int level = 1;

  value_compressor();
  ~value_compressor();
  value_compressor(const value_compressor&) = delete;
  value_compressor& operator=(const value_compressor&) = delete;

 private:
  friend class value_packing;
  friend class value_unpacking;
  struct release {
    void operator()(ZSTD_CCtx_s* context) const;
    void operator()(ZSTD_DCtx_s* context) const;
  };
  ZSTD_CCtx_s* compressing();
  ZSTD_DCtx_s* expanding();
  std::span<std::byte> high_bytes();
  std::span<std::byte> packed_piece();

  std::unique_ptr<ZSTD_CCtx_s, release> compressing_;
  std::unique_ptr<ZSTD_DCtx_s, release> expanding_;
  std::vector<std::byte> high_, packed_;
};

/// Compresses one value.
class value_packing {
 public:
  /// `into` has at least the size of `payload`; both stay until it is done.
  value_packing(value_compressor& by, std::span<const std::byte> payload, std::span<std::byte> into);

  bool done() const { return done_; }
  /// Compresses one piece, which takes about 0.25 ms. Returns its bytes of the payload.
  size_t advance();
  /// Returns how many bytes of `into` stand for the payload; 0: the payload is to be stored as it is. Precondition: done.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  bool pack(std::span<const std::byte> piece);

  value_compressor& by_;
  std::span<const std::byte> payload_;
  std::span<std::byte> into_;
  size_t piece_ = 0;
  size_t taken_ = 0, filled_; ///< bytes of the payload, and of `into`
  size_t packed_bytes_ = 0;
  bool done_ = false;
};

/// Expands one value.
class value_unpacking {
 public:
  /// The first `packed_bytes` of the memory, which has the size of the payload, become the payload. It is done at once, without success,
  /// if they are no compressed value of that size.
  value_unpacking(value_compressor& by, std::span<std::byte> memory, size_t packed_bytes);

  bool done() const { return left_.empty(); }
  /// Expands one piece, which takes about 0.1 ms. Returns its bytes of the payload.
  size_t advance();
  /// Precondition: done.
  bool succeeded() const { return succeeded_; }

 private:
  struct packed_piece {
    size_t begin, low_bytes, frame_bytes; ///< of the bytes that were received
    size_t place, bytes;                  ///< in the payload
  };
  bool find_pieces(size_t packed_bytes);
  bool unpack(const packed_piece& piece);

  value_compressor& by_;
  std::span<std::byte> memory_;
  std::vector<packed_piece> left_;
  bool succeeded_ = true;
};

} // namespace terrace::remote
