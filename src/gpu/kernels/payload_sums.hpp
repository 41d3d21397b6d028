// XXH3 of payloads (64 bits, seed 0) as the kernel computes it: the checksum of index/payload_checksum.hpp,
// for more than 240 bytes. The code is written once, like copy_runs.hpp: nvcc compiles it for the device
// (payload_sums.cu), the simulated driver and the tests for the host. Pure: `read` accesses the addresses,
// which are multiples of 8 except for the last 64 bytes.
//
// XXH3 adds up what stripes of 64 bytes contribute to 8 lanes, and scrambles the lanes after every 16
// stripes. A payload has 32 threads: thread t has lane t % 8 of the stripes t / 8, t / 8 + 4 and so on, so
// four of them have parts of one sum.
#pragma once

#include "gpu/kernels/copy_runs.hpp"

#include <cstdint>

namespace terrace::gpu {

struct summed_payload {
  uint64_t address = 0; ///< a multiple of 8
  uint64_t bytes = 0;   ///< `payload_sum_bytes_min` or more
};

/// XXH3 hashes shorter payloads in another way.
constexpr uint64_t payload_sum_bytes_min = 241;

/// The parameters of a launch, by value: at most 4,096 bytes.
struct sum_batch {
  static constexpr uint32_t payloads_max = 64;
  uint64_t sums = 0; ///< address of the sums, 8 bytes for each payload
  uint32_t payloads = 0;
  summed_payload payload[payloads_max];
};
static_assert(sizeof(sum_batch) <= 4096);

namespace xxh3 {

constexpr uint64_t prime32_1 = 0x9E3779B1, prime32_2 = 0x85EBCA77, prime32_3 = 0xC2B2AE3D;
constexpr uint64_t prime64_1 = 0x9E3779B185EBCA87, prime64_2 = 0xC2B2AE3D27D4EB4F,
                   prime64_3 = 0x165667B19E3779F9, prime64_4 = 0x85EBCA77C2B2AE63,
                   prime64_5 = 0x27D4EB2F165667C5;
constexpr uint64_t stripe_bytes = 64, stripes_per_block = 16, block_bytes = stripe_bytes * stripes_per_block;

/// Returns 8 bytes of the secret at `at`, which is 184 at most.
TERRACE_HOST_DEVICE inline uint64_t secret_at(uint32_t at) {
  constexpr uint64_t words[24] = {
      0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
      0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
      0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
      0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
      0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};
  const uint32_t word = at / 8, shift = at % 8 * 8;
  return shift == 0 ? words[word] : words[word] >> shift | words[word + 1] << (64 - shift);
}

TERRACE_HOST_DEVICE inline uint64_t first_of_lane(uint32_t lane) {
  constexpr uint64_t begin[8] = {prime32_3, prime64_1, prime64_2, prime64_3,
                                 prime64_4, prime32_2, prime64_5, prime32_1};
  return begin[lane];
}

/// Returns the part that a stripe adds to a lane: `value` is its 8 bytes there, `neighbour` those of lane ^ 1.
TERRACE_HOST_DEVICE constexpr uint64_t contribution(uint64_t value, uint64_t neighbour, uint64_t key) {
  const uint64_t mixed = value ^ key;
  return neighbour + (mixed & 0xffffffff) * (mixed >> 32);
}

TERRACE_HOST_DEVICE constexpr uint64_t scrambled(uint64_t lane, uint64_t key) {
  return (lane ^ lane >> 47 ^ key) * prime32_1;
}

/// XORs the two halves of the 128-bit product.
TERRACE_HOST_DEVICE constexpr uint64_t folded_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32), other = a0 * b1 + (cross & 0xffffffff);
  return (a1 * b1 + (cross >> 32) + (other >> 32)) ^ (other << 32 | (low & 0xffffffff));
}

/// Merges all 8 lanes.
TERRACE_HOST_DEVICE inline uint64_t merged(const uint64_t* lanes, uint64_t bytes) {
  uint64_t sum = bytes * prime64_1;
  for (uint32_t i = 0; i < 4; ++i)
    sum += folded_product(lanes[2 * i] ^ secret_at(11 + 16 * i), lanes[2 * i + 1] ^ secret_at(19 + 16 * i));
  sum ^= sum >> 37;
  sum *= 0x165667919E3779F9;
  return sum ^ sum >> 32;
}

} // namespace xxh3

/// One of the 32 threads of a payload.
class sum_thread {
 public:
  static constexpr uint32_t count = 32, lanes = 8, rows = count / lanes;

  TERRACE_HOST_DEVICE explicit sum_thread(uint32_t number) : lane_(number % lanes), row_(number / lanes) {
    for (uint32_t k = 0; k < rows; ++k)
      keys_[k] = xxh3::secret_at((row_ + rows * k + lane_) * 8);
    scramble_key_ = xxh3::secret_at(128 + lane_ * 8);
  }

  TERRACE_HOST_DEVICE uint32_t lane() const { return lane_; }
  TERRACE_HOST_DEVICE uint64_t begin() const { return xxh3::first_of_lane(lane_); }

  /// Adds its part of the first `stripes` stripes of a block to its lane.
  template <class Read>
  TERRACE_HOST_DEVICE uint64_t share(uint64_t block, uint32_t stripes, Read&& read) const {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < rows; ++k)
      if (row_ + rows * k < stripes)
        sum += at(block + (row_ + rows * k) * xxh3::stripe_bytes, keys_[k], read);
    return sum;
  }
  /// Adds its part of the last stripe, which ends with the payload and overlaps the one before.
  template <class Read>
  TERRACE_HOST_DEVICE uint64_t last_share(uint64_t stripe, Read&& read) const {
    return row_ == 0 ? at(stripe, xxh3::secret_at(121 + lane_ * 8), read) : 0;
  }
  TERRACE_HOST_DEVICE uint64_t scramble(uint64_t sum) const { return xxh3::scrambled(sum, scramble_key_); }

 private:
  template <class Read>
  TERRACE_HOST_DEVICE uint64_t at(uint64_t stripe, uint64_t key, Read&& read) const {
    return xxh3::contribution(read(stripe + lane_ * 8), read(stripe + (lane_ ^ 1) * 8), key);
  }

  uint32_t lane_;
  uint32_t row_;
  uint64_t keys_[rows] = {};
  uint64_t scramble_key_ = 0;
};

/// The number of blocks of a payload that are scrambled; up to 16 stripes and the last one follow.
TERRACE_HOST_DEVICE constexpr uint64_t scrambled_blocks(uint64_t bytes) {
  return (bytes - 1) / xxh3::block_bytes;
}
TERRACE_HOST_DEVICE constexpr uint32_t stripes_behind(uint64_t bytes) {
  return static_cast<uint32_t>((bytes - 1) % xxh3::block_bytes / xxh3::stripe_bytes);
}

/// Runs all threads of a payload one after the other, as the host does instead of the kernel.
template <class Read>
uint64_t sum_of_payload(const summed_payload& payload, Read&& read) {
  uint64_t lanes[sum_thread::lanes];
  for (uint32_t lane = 0; lane < sum_thread::lanes; ++lane)
    lanes[lane] = xxh3::first_of_lane(lane);
  auto add = [&](auto&& share) {
    for (uint32_t number = 0; number < sum_thread::count; ++number) {
      const sum_thread thread(number);
      lanes[thread.lane()] += share(thread);
    }
  };
  const uint64_t blocks = scrambled_blocks(payload.bytes);
  for (uint64_t block = 0; block < blocks; ++block) {
    add([&](const sum_thread& thread) {
      return thread.share(payload.address + block * xxh3::block_bytes, xxh3::stripes_per_block, read);
    });
    for (uint32_t number = 0; number < sum_thread::lanes; ++number)
      lanes[number] = sum_thread(number).scramble(lanes[number]);
  }
  add([&](const sum_thread& thread) {
    return thread.share(payload.address + blocks * xxh3::block_bytes, stripes_behind(payload.bytes), read) +
           thread.last_share(payload.address + payload.bytes - xxh3::stripe_bytes, read);
  });
  return xxh3::merged(lanes, payload.bytes);
}

} // namespace terrace::gpu
