// The hash of one block of tokens: the interface of every digest algorithm.
#pragma once

#include "base/digest.hpp"
#include "index/cbor.hpp"
#include "index/extra_keys.hpp"
#include "index/sha256.hpp"
#include "index/space_spec.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// Hashes one block after the other, each chained to its parent. docs/hashing.md specifies the bytes of every
/// algorithm. Reuses its context and buffers, so it is not thread-safe: each actor has its own.
class token_hasher {
 public:
  virtual ~token_hasher() = default;

  /// Width of the digests in bytes; the rest of a `digest` is zeros.
  virtual size_t width() const = 0;

  /// Returns the parent of a prompt's first block, derived from the space's seed; none if the first block has
  /// no parent.
  virtual std::optional<digest> root() const = 0;

  /// The form in which the algorithm hashes extra keys.
  virtual extra_key_form extra_form() const { return extra_key_form::by_kind; }

  /// `extra`: the block's extra keys in its form (extra_keys.hpp), or empty.
  virtual digest hash_block(const std::optional<digest>& parent, std::span<const uint32_t> tokens,
                            std::span<const uint8_t> extra) = 0;
};

/// Makes the hasher for the algorithm and seed of a valid spec.
std::unique_ptr<token_hasher> make_token_hasher(const space_spec& spec);

/// Returns the tokens as bytes: little-endian, 4 per token.
std::span<const uint8_t> raw_bytes(std::span<const uint32_t> tokens);

// SHA-256 over the parent and the raw tokens: SGLang's page hash.

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

// The hash `sha256_cbor` of vLLM.

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

// 128-bit XXH3: fast, but not resistant to deliberate collisions.

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
