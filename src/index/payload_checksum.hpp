// The checksum of an object's payload: XXH3, 64 bits, seed 0 (https://xxhash.com).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <xxhash.h>

namespace terrace {

// The checksum of a block on disk over itself.

/// XXH3 with seed 0 over all bytes of the structure, with its checksum field set to zero.
template <class Raw>
uint64_t block_checksum(Raw copy, uint64_t Raw::*checksum) {
  static_assert(std::is_trivially_copyable_v<Raw> && std::has_unique_object_representations_v<Raw>);
  copy.*checksum = 0;
  return XXH3_64bits(&copy, sizeof copy);
}

} // namespace terrace

struct XXH3_state_s;

namespace terrace {

/// Detects damage, not forgery: anybody who can write to the volume can compute it. It runs at 20 to 90 GB/s
/// per core, depending on the processor's vector instructions, if the bytes are in cache, otherwise at memory
/// speed: compute it for large payloads on a copier, not on a worker.
uint64_t payload_checksum(std::span<const std::byte> payload);

/// Computes the same value for a payload in pieces of any size.
class payload_checksummer {
 public:
  payload_checksummer();

  void update(std::span<const std::byte> piece);

  /// The checksum of everything so far; more may follow.
  uint64_t value() const;

  /// Resets to the initial state.
  void restart();

 private:
  struct release {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, release> state_;
};

} // namespace terrace
