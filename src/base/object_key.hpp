// The key of an object: one (space, pool, rank, chunk).
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"

#include <cstring>
#include <functional>

namespace terrace {

struct object_key {
  space_id space{};
  uint16_t pool = 0; ///< index in the space's list of pools
  uint16_t rank = 0; ///< 0 for a rank-replicated pool
  digest chunk;

  friend auto operator<=>(const object_key&, const object_key&) = default;
};

/// The name of an object in eviction policies, where size matters: 128 bits derived from the key. A collision
/// costs one wrong eviction, never wrong data: residency is decided by the full key.
struct entry_key {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const entry_key&, const entry_key&) = default;
  bool empty() const { return high == 0 && low == 0; }
};

namespace detail {
constexpr uint64_t mix64(uint64_t x) { // finalizer of splitmix64 (Steele, Lea, Flood 2014)
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Both halves of a 64 x 64 bit product, XORed (the mixing step of wyhash, Wang Yi 2019).
constexpr uint64_t fold_product(uint64_t a, uint64_t b) {
  __extension__ using wide = unsigned __int128;
  wide product = static_cast<wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}
} // namespace detail

/// Part of every policy name, so that a client that chooses its digests cannot construct two keys with the
/// same name. Such keys would alternate in a policy and escape eviction.
struct entry_key_salt {
  uint64_t first = 0;
  uint64_t second = 0;
};

namespace detail {
inline constinit entry_key_salt
    process_salt; ///< zero, so names are the same at every run, until a program sets it
}

/// Call once, before the first name is made and before threads start. Names have no meaning outside the
/// process; disks store full keys.
inline void salt_entry_keys(const entry_key_salt& salt) { detail::process_salt = salt; }

/// Digests are uniform for the cryptographic algorithms, but the opaque digests of engines may not be, so
/// everything is mixed. Each key is needed for two hash table lookups, so the function is only a few
/// multiplications.
inline entry_key to_entry_key(const object_key& key) {
  constexpr uint64_t odd[] = {0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL, 0x8ebc6af09c88c6e3ULL,
                              0x589965cc75374cc3ULL};
  uint64_t words[4];
  std::memcpy(words, key.chunk.bytes.data(), sizeof words);
  uint64_t place = static_cast<uint64_t>(key.space) << 32 | static_cast<uint64_t>(key.pool) << 16 | key.rank;
  uint64_t first = detail::process_salt.first;
  uint64_t second = detail::process_salt.second;
  uint64_t a = detail::fold_product(words[0] ^ odd[0] ^ first, words[1] ^ odd[1] ^ place ^ second);
  uint64_t b = detail::fold_product(words[2] ^ odd[2] ^ second, words[3] ^ odd[3] ^ place ^ first);
  return {detail::fold_product(a ^ odd[1], b ^ odd[2]), detail::fold_product(a ^ odd[3], b ^ odd[0])};
}

} // namespace terrace

template <>
struct std::hash<terrace::object_key> {
  size_t operator()(const terrace::object_key& key) const noexcept { return terrace::to_entry_key(key).low; }
};

template <>
struct std::hash<terrace::entry_key> {
  size_t operator()(const terrace::entry_key& key) const noexcept { return key.low; }
};
