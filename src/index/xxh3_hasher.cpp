#include "index/xxh3_hasher.hpp"

#include "index/extra_parent.hpp"

#include <xxhash.h>

namespace terrace {

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
