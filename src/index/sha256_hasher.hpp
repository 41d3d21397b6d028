// SHA-256 over the parent and the raw tokens: SGLang's page hash.
#pragma once

#include "index/sha256.hpp"
#include "index/token_hasher.hpp"

#include <string_view>

namespace terrace {

/// SHA-256 of the parent's 32 bytes followed by the tokens, 4 bytes each, little-endian. With an empty seed
/// the first block has no parent, like SGLang's first page; otherwise the root is SHA-256 of the seed. Extra
/// keys, which SGLang puts into a seed of its own, change the parent: docs/hashing.md.
class sha256_hasher : public token_hasher {
 public:
  explicit sha256_hasher(std::string_view seed);
  size_t width() const override { return 32; }
  std::optional<digest> root() const override { return root_; }
  digest hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                    std::span<const uint8_t> extra) override;

 private:
  sha256 hash_;
  std::optional<digest> root_;
};

} // namespace terrace
