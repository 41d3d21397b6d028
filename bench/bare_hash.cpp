#include "bench/bare_hash.hpp"

#include "bench/harness.hpp"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <cstring>

namespace terrace::bench {

uint64_t bare_sha256_chain(std::span<const uint8_t> bytes, size_t block_bytes) {
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  static EVP_MD_CTX* const context = EVP_MD_CTX_new();
  std::array<unsigned char, 32> digest{};
  for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes)) {
    if (EVP_DigestInit_ex2(context, algorithm, nullptr) != 1 ||
        EVP_DigestUpdate(context, digest.data(), digest.size()) != 1 ||
        EVP_DigestUpdate(context, bytes.data(), block_bytes) != 1 ||
        EVP_DigestFinal_ex(context, digest.data(), nullptr) != 1)
      give_up("SHA-256 failed");
  }
  uint64_t head;
  std::memcpy(&head, digest.data(), sizeof head);
  return head;
}

uint64_t bare_xxh3_chain(std::span<const uint8_t> bytes, size_t block_bytes) {
  XXH128_hash_t chain{};
  for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes))
    chain = XXH3_128bits_withSeed(bytes.data(), block_bytes, chain.low64);
  return chain.low64;
}

} // namespace terrace::bench
