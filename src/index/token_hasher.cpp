#include "index/token_hasher.hpp"

#include "index/sha256_cbor_hasher.hpp"
#include "index/sha256_hasher.hpp"
#include "index/xxh3_hasher.hpp"

#include <bit>
#include <cstdlib>

namespace terrace {

static_assert(std::endian::native == std::endian::little, "tokens are hashed as they lie in memory");

std::span<const uint8_t> raw_bytes(std::span<const uint32_t> tokens) {
  return {reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size_bytes()};
}

std::unique_ptr<token_hasher> make_token_hasher(const space_spec& spec) {
  switch (spec.algorithm) {
    case hash_algorithm::sha256_cbor: return std::make_unique<sha256_cbor_hasher>(spec.seed);
    case hash_algorithm::sha256: return std::make_unique<sha256_hasher>(spec.seed);
    case hash_algorithm::xxh3_128: return std::make_unique<xxh3_hasher>(spec.seed);
  }
  std::abort(); // the spec was not validated
}

} // namespace terrace
