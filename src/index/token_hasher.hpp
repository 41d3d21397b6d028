// The hash of one block of tokens: the interface of every digest algorithm.
#pragma once

#include "base/digest.hpp"
#include "index/extra_keys.hpp"
#include "index/space_spec.hpp"

#include <memory>
#include <optional>
#include <span>

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

} // namespace terrace
