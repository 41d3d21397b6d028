// SHA-256 through OpenSSL; the algorithm is fetched once and the context reused.
#pragma once

#include "base/digest.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

struct evp_md_ctx_st;

namespace terrace {

/// Call begin, then update any number of times, then finish; repeatable. Not thread-safe. A one-shot EVP_Digest looks
/// up the algorithm at each call, which costs about as much as hashing 256 bytes. Aborts if libcrypto has no SHA-256.
class sha256 {
 public:
  sha256();

  void begin();
  void update(std::span<const uint8_t> bytes);
  void update(std::string_view text) { update({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }
  digest finish();

 private:
  struct deleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, deleter> context_;
};

/// HMAC (RFC 2104) with SHA-256. Aborts if libcrypto has no SHA-256.
digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message);

/// Derives a key of 32 bytes by HKDF (RFC 5869) with SHA-256. Keys with different `info` tell nothing of one another. Precondition:
/// at most 255 bytes of `info`.
digest hkdf_sha256(std::span<const uint8_t> key, std::span<const uint8_t> salt, std::string_view info);

} // namespace terrace
