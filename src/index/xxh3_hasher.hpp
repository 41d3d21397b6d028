// 128-bit XXH3: fast, but not resistant to deliberate collisions.
#pragma once

#include "index/token_hasher.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace terrace {

/// XXH3-128 (seed 0, canonical byte order) of the parent's 16 bytes followed by the tokens as in `sha256`;
/// the root and extra keys are as in `sha256`, too. Isolated trust groups refuse it.
class xxh3_hasher : public token_hasher {
 public:
  explicit xxh3_hasher(std::string_view seed);
  size_t width() const override { return 16; }
  std::optional<digest> root() const override { return root_; }
  digest hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                    std::span<const uint8_t> extra) override;

 private:
  std::vector<uint8_t> input_;
  std::optional<digest> root_;
};

} // namespace terrace
