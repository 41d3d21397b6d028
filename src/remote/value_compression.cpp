#include "remote/value_compression.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace terrace::remote {

namespace {

constexpr size_t piece_bytes = value_compressor::piece_bytes;
constexpr size_t frame_bytes_max = ZSTD_COMPRESSBOUND(piece_bytes / 2);

static_assert(std::endian::native == std::endian::little);

size_t pieces_of(size_t payload_bytes) { return (payload_bytes + piece_bytes - 1) / piece_bytes; }

constexpr size_t block_floats = 64; ///< blocks of a known length, without overlap, become vector instructions

/// Writes the two planes of `floats` floats.
void split_planes(const std::byte* __restrict from, size_t floats, std::byte* __restrict low,
                  std::byte* __restrict high) {
  for (; floats >= block_floats; floats -= block_floats) {
    for (size_t i = 0; i < block_floats; ++i) {
      low[i] = from[2 * i];
      high[i] = from[2 * i + 1];
    }
    from += 2 * block_floats;
    low += block_floats;
    high += block_floats;
  }
  for (size_t i = 0; i < floats; ++i) {
    low[i] = from[2 * i];
    high[i] = from[2 * i + 1];
  }
}

void join_planes(const std::byte* __restrict low, const std::byte* __restrict high, size_t floats,
                 std::byte* __restrict into) {
  for (; floats >= block_floats; floats -= block_floats) {
    for (size_t i = 0; i < block_floats; ++i) {
      into[2 * i] = low[i];
      into[2 * i + 1] = high[i];
    }
    into += 2 * block_floats;
    low += block_floats;
    high += block_floats;
  }
  for (size_t i = 0; i < floats; ++i) {
    into[2 * i] = low[i];
    into[2 * i + 1] = high[i];
  }
}

bool is_half_float(std::string_view dtype) {
  return dtype == "bfloat16" || dtype == "bf16" || dtype == "float16" || dtype == "fp16" || dtype == "half";
}

} // namespace

bool consists_of_half_floats(const space_spec& space, uint16_t pool) {
  assert(pool < space.pools.size());
  const auto& tensors = space.pools[pool].tensors;
  if (tensors.empty())
    return is_half_float(space.dtype);
  return std::ranges::all_of(tensors, is_half_float, &tensor_shape::dtype);
}

// ---- memory ----

void value_compressor::release::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void value_compressor::release::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

value_compressor::value_compressor() = default;
value_compressor::~value_compressor() = default;

ZSTD_CCtx_s* value_compressor::compressing() {
  if (!compressing_) {
    compressing_.reset(ZSTD_createCCtx());
    if (!compressing_ ||
        ZSTD_isError(ZSTD_CCtx_setParameter(compressing_.get(), ZSTD_c_compressionLevel, level)) != 0)
      std::abort(); // no memory
  }
  return compressing_.get();
}

ZSTD_DCtx_s* value_compressor::expanding() {
  if (!expanding_)
    expanding_.reset(ZSTD_createDCtx());
  if (!expanding_)
    std::abort(); // no memory
  return expanding_.get();
}

std::span<std::byte> value_compressor::high_bytes() {
  high_.resize(piece_bytes / 2);
  return high_;
}

std::span<std::byte> value_compressor::packed_piece() {
  packed_.resize(piece_bytes / 2 + frame_bytes_max);
  return packed_;
}

// ---- packing ----

value_packing::value_packing(value_compressor& by, std::span<const std::byte> payload,
                             std::span<std::byte> into)
    : by_(by), payload_(payload), into_(into), filled_(pieces_of(payload.size()) * sizeof(uint32_t)) {
  assert(into.size() >= payload.size());
  done_ = filled_ >= payload.size();
}

size_t value_packing::advance() {
  if (done_)
    return 0;
  const auto piece = payload_.subspan(taken_, std::min(piece_bytes, payload_.size() - taken_));
  const bool fits = pack(piece);
  taken_ += piece.size();
  ++piece_;
  const bool last = taken_ == payload_.size();
  // The next piece must not begin behind its place in the payload.
  done_ = !fits || last || filled_ > taken_;
  if (last && fits && filled_ <= payload_.size() - payload_.size() / 16)
    packed_bytes_ = filled_;
  return piece.size();
}

/// False: there is no room for it.
bool value_packing::pack(std::span<const std::byte> piece) {
  const size_t floats = piece.size() / 2, low_bytes = piece.size() - floats;
  const auto room = into_.subspan(filled_);
  if (room.size() <= low_bytes)
    return false;
  const auto high = by_.high_bytes().first(floats);
  split_planes(piece.data(), floats, room.data(), high.data());
  if (low_bytes != floats)
    room[floats] = piece.back();
  const auto space = room.subspan(low_bytes);
  const size_t frame =
      ZSTD_compress2(by_.compressing(), space.data(), space.size(), high.data(), high.size());
  if (ZSTD_isError(frame) != 0)
    return false;
  const auto told = static_cast<uint32_t>(frame);
  std::memcpy(into_.data() + piece_ * sizeof told, &told, sizeof told);
  filled_ += low_bytes + frame;
  return true;
}

// ---- unpacking ----

value_unpacking::value_unpacking(value_compressor& by, std::span<std::byte> memory, size_t packed_bytes)
    : by_(by), memory_(memory) {
  assert(packed_bytes <= memory.size());
  succeeded_ = find_pieces(packed_bytes);
  if (!succeeded_)
    left_.clear();
}

bool value_unpacking::find_pieces(size_t packed_bytes) {
  const size_t pieces = pieces_of(memory_.size());
  size_t begin = pieces * sizeof(uint32_t);
  if (pieces == 0 || begin > packed_bytes)
    return false;
  left_.reserve(pieces);
  for (size_t i = 0; i < pieces; ++i) {
    uint32_t frame = 0;
    std::memcpy(&frame, memory_.data() + i * sizeof frame, sizeof frame);
    const size_t place = i * piece_bytes, bytes = std::min(piece_bytes, memory_.size() - place);
    const size_t low_bytes = bytes - bytes / 2;
    if ((i != 0 && begin > place) || frame > frame_bytes_max || packed_bytes - begin < low_bytes + frame)
      return false;
    left_.push_back(
        {.begin = begin, .low_bytes = low_bytes, .frame_bytes = frame, .place = place, .bytes = bytes});
    begin += low_bytes + frame;
  }
  return begin == packed_bytes;
}

size_t value_unpacking::advance() {
  if (done())
    return 0;
  const packed_piece piece = left_.back();
  left_.pop_back();
  if (!unpack(piece)) {
    succeeded_ = false;
    left_.clear();
  }
  return piece.bytes;
}

bool value_unpacking::unpack(const packed_piece& piece) {
  const auto packed = by_.packed_piece().first(piece.low_bytes + piece.frame_bytes);
  std::memcpy(packed.data(), memory_.data() + piece.begin, packed.size());
  const size_t floats = piece.bytes / 2;
  const auto high = by_.high_bytes().first(floats);
  const size_t expanded = ZSTD_decompressDCtx(by_.expanding(), high.data(), high.size(),
                                              packed.data() + piece.low_bytes, piece.frame_bytes);
  if (ZSTD_isError(expanded) != 0 || expanded != high.size())
    return false;
  std::byte* into = memory_.data() + piece.place;
  join_planes(packed.data(), high.data(), floats, into);
  if (piece.low_bytes != floats)
    into[piece.bytes - 1] = packed[floats];
  return true;
}

} // namespace terrace::remote
