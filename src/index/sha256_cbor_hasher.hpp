// The hash `sha256_cbor` of vLLM.
#pragma once

#include "index/cbor.hpp"
#include "index/sha256.hpp"
#include "index/token_hasher.hpp"

#include <string_view>

namespace terrace {

/// SHA-256 of the canonical CBOR of [parent, [tokens], extra keys or null]. The root, vLLM's NONE_HASH, is
/// SHA-256 of the CBOR text of the seed (vLLM takes it from PYTHONHASHSEED).
class sha256_cbor_hasher : public token_hasher {
 public:
  explicit sha256_cbor_hasher(std::string_view seed);
  size_t width() const override { return 32; }
  std::optional<digest> root() const override { return root_; }
  extra_key_form extra_form() const override { return extra_key_form::vllm; }
  digest hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                    std::span<const uint8_t> extra) override;

 private:
  sha256 hash_;
  cbor::buffer encoded_;
  digest root_;
};

} // namespace terrace
