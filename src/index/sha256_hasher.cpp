#include "index/sha256_hasher.hpp"

#include "index/extra_parent.hpp"

namespace terrace {

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

} // namespace terrace
