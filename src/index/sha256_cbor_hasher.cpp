#include "index/sha256_cbor_hasher.hpp"

namespace terrace {

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

} // namespace terrace
