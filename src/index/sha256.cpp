#include "index/sha256.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>

namespace terrace {

namespace {

/// Never freed: libcrypto frees its own tables at exit.
const EVP_MD* fetched() {
  static const EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

void require(bool succeeded) {
  if (!succeeded)
    std::abort();
}

} // namespace

void sha256::deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

sha256::sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ && fetched() && EVP_DigestInit_ex2(context_.get(), fetched(), nullptr) == 1);
}

void sha256::begin() { require(EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) == 1); }

void sha256::update(std::span<const uint8_t> bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

digest sha256::finish() {
  digest out;
  unsigned length = 0;
  require(EVP_DigestFinal_ex(context_.get(), out.bytes.data(), &length) == 1 && length == out.bytes.size());
  return out;
}

digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message) {
  digest out;
  unsigned length = 0;
  require(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), message.data(), message.size(),
               out.bytes.data(), &length) != nullptr &&
          length == out.bytes.size());
  return out;
}

digest hkdf_sha256(std::span<const uint8_t> key, std::span<const uint8_t> salt, std::string_view info) {
  constexpr std::array<uint8_t, 32> no_salt{}; // as RFC 5869 says
  const digest extracted = hmac_sha256(salt.empty() ? no_salt : salt, key);
  std::array<uint8_t, 256> block{};
  assert(info.size() < block.size());
  std::copy(info.begin(), info.end(), block.begin());
  block[info.size()] = 1; // the first block of the output is all of it
  return hmac_sha256(extracted.bytes, std::span(block).first(info.size() + 1));
}

} // namespace terrace
