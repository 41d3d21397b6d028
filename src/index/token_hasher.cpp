#include "index/token_hasher.hpp"

#include "index/extra_keys.hpp"

#include <bit>
#include <cstdlib>
#include <xxhash.h>

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

sha256_hasher::sha256_hasher(std::string_view seed) {
  if (seed.empty())
    return;
  hash_.begin();
  hash_.update(seed);
  root_ = hash_.finish();
}

digest sha256_hasher::hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                                 std::span<const uint8_t> extra) {
  if (!extra.empty()) {
    hash_.begin();
    feed_extra_parent([this](auto bytes) { hash_.update(bytes); }, parent, width(), extra);
    digest changed = hash_.finish();
    return hash_block(changed, tokens, {});
  }
  hash_.begin();
  if (parent)
    hash_.update(parent->bytes);
  hash_.update(raw_bytes(tokens));
  return hash_.finish();
}

sha256_cbor_hasher::sha256_cbor_hasher(std::string_view seed) {
  cbor::put_text(encoded_, seed);
  hash_.begin();
  hash_.update(encoded_);
  root_ = hash_.finish();
}

digest sha256_cbor_hasher::hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                                      std::span<const uint8_t> extra) {
  encoded_.clear();
  cbor::put_array(encoded_, 3);
  cbor::put_bytes(encoded_, parent ? parent->bytes : root_.bytes);
  cbor::put_numbers(encoded_, tokens);
  if (extra.empty())
    cbor::put_null(encoded_);
  else
    encoded_.insert(encoded_.end(), extra.begin(), extra.end());
  hash_.begin();
  hash_.update(encoded_);
  return hash_.finish();
}

namespace {

digest xxh3(std::span<const uint8_t> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return digest::from(canonical.digest);
}

} // namespace

xxh3_hasher::xxh3_hasher(std::string_view seed) {
  if (!seed.empty())
    root_ = xxh3({reinterpret_cast<const uint8_t*>(seed.data()), seed.size()});
}

digest xxh3_hasher::hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                               std::span<const uint8_t> extra) {
  auto append = [this](std::span<const uint8_t> bytes) {
    input_.insert(input_.end(), bytes.begin(), bytes.end());
  };
  std::optional<digest> above = parent;
  if (!extra.empty()) {
    input_.clear();
    feed_extra_parent(append, parent, width(), extra);
    above = xxh3(input_);
  }
  input_.clear();
  if (above)
    append(std::span<const uint8_t>(above->bytes).first(width()));
  append(raw_bytes(tokens));
  return xxh3(input_);
}

} // namespace terrace
