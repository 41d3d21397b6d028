// Everything that must match for KV to be interchangeable.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

// The structure of an object's bytes: one or more tensors, back to back.

/// The order of a tensor's dimensions, slowest first. K and V are two halves unless kv_size is 1. The numbers
/// are part of the protocol and of a space's fingerprint.
enum class tensor_format : uint8_t {
  binary = 0,  ///< [layers, elements]: a state of fixed size, independent of the chunk's length
  kv_2ltd = 1, ///< [kv, layers, tokens, hidden]
  kv_t2d = 2,  ///< [layers, tokens, kv, hidden]
  kv_2td = 3,  ///< [layers, kv, tokens, hidden]
  kv_mla = 4,  ///< [layers, tokens, hidden]: one latent vector in place of K and V
};

std::string_view to_string(tensor_format format);

/// Bits per element for the type names used by engines ("bfloat16", "float8_e4m3fn", "int4", ...); nullopt if
/// unknown.
std::optional<uint32_t> bits_of_dtype(std::string_view dtype);

struct tensor_shape {
  static constexpr uint32_t layers_max = 4'096;
  static constexpr uint32_t hidden_max = 1U << 24;

  tensor_format format = tensor_format::kv_2ltd;
  std::string dtype;
  uint32_t kv_size = 2; ///< 2, or 1 if K and V are one; `kv_mla` and `binary`: 1
  uint32_t layers = 1;
  uint32_t hidden = 0; ///< elements per token in one layer of K or V; `binary`: per layer
  uint32_t first_layer =
      0; ///< the first of the model's layers (or of the layers of the divided tensor) in this tensor

  /// Error: `bad_request` for a value that is out of range.
  result<void> validate() const;

  /// Precondition: the shape is valid. `tokens` is the chunk's length.
  uint64_t elements(uint32_t tokens) const;
  uint64_t bits(uint32_t tokens) const { return elements(tokens) * bits_of_dtype(dtype).value_or(0); }
  std::vector<uint64_t> dimensions(uint32_t tokens) const;

  friend bool operator==(const tensor_shape&, const tensor_shape&) = default;
};

/// Several tensors of different shapes in one object without gaps: each begins where the previous one ends.
class object_shape {
 public:
  static constexpr size_t tensors_max = 16;

  /// Makes the shape for chunks of `tokens` tokens. Errors (`bad_request`): no tensor, too many, one that is
  /// invalid or not a whole number of bytes.
  static result<object_shape> make(std::vector<tensor_shape> tensors, uint32_t tokens);

  std::span<const tensor_shape> tensors() const { return tensors_; }
  uint64_t offset(size_t tensor) const { return offsets_[tensor]; }
  uint64_t bytes_of(size_t tensor) const { return offsets_[tensor + 1] - offsets_[tensor]; }
  uint64_t bytes() const { return offsets_.back(); }

 private:
  std::vector<tensor_shape> tensors_;
  std::vector<uint64_t> offsets_; ///< one for each tensor, and the end
};

/// Divides the layers of each tensor into `groups` runs of nearly equal length, so that an engine can store
/// and load a model by layer groups. Element i describes the object of group i. Error: `bad_request` if a
/// tensor has fewer layers than there are groups.
result<std::vector<std::vector<tensor_shape>>> divide_layers(std::span<const tensor_shape> tensors,
                                                             uint32_t groups);

/// How tokens become digests (docs/hashing.md). The numbers are part of the protocol and of the fingerprint.
enum class hash_algorithm : uint8_t { sha256_cbor = 0, sha256 = 1, xxh3_128 = 2 };

/// When a prefix is usable in a pool. The numbers are part of the protocol and of the fingerprint.
enum class hit_rule : uint8_t {
  all_chunks = 0,      ///< every chunk of the prefix is needed, as for attention
  trailing_chunks = 1, ///< only the last `trailing` chunks are needed: a recurrent state, a sliding window
};

std::string_view to_string(hash_algorithm algorithm);

/// One kind of state. The index of a pool in `space_spec::pools` is its number in object keys.
struct pool_spec {
  std::string name;
  uint64_t object_bytes = 0; ///< size of the object of one chunk on one rank
  hit_rule rule = hit_rule::all_chunks;
  uint32_t trailing = 1;             ///< `trailing_chunks` only: how many chunks are needed
  bool replicated = false;           ///< all ranks have the same content, which is stored once
  std::vector<tensor_shape> tensors; ///< the content of an object, if declared; it determines `object_bytes`

  friend bool operator==(const pool_spec&, const pool_spec&) = default;
};

/// Two clients whose specs differ in any field share nothing. The rank belongs to the connection, not to the
/// space.
struct space_spec {
  static constexpr size_t text_bytes_max = 4'096; ///< largest size of each string
  static constexpr uint32_t chunk_tokens_max = 65'536;
  static constexpr uint32_t world_size_max = 1'024;
  static constexpr size_t pools_max = 128; ///< each layer group is a pool
  static constexpr size_t pool_name_bytes_max = 64;
  /// keeps every object within one registered buffer
  static constexpr uint64_t object_bytes_max = 1ULL << 30;
  static constexpr uint32_t trailing_max = 65'536;

  std::string model;
  std::string revision;
  std::string dtype;
  std::string layout;
  uint32_t chunk_tokens = 256;     ///< the unit of storing and sharing
  uint32_t hash_block_tokens = 16; ///< the unit of the digest chain; divides `chunk_tokens`
  uint32_t world_size = 1;         ///< number of ranks
  std::vector<pool_spec> pools;
  std::string salt; ///< the tenant's salt, not that of a request, which is hashed into its digests
  hash_algorithm algorithm = hash_algorithm::sha256_cbor;
  std::string seed; ///< start of every digest chain

  /// `isolated` says that the trust group's clients must not find each other's KV through a forged collision. Errors:
  /// `bad_request` with the field, its value and what was expected; `denied` for `xxh3_128` when isolated.
  result<void> validate(bool isolated) const;

  /// Returns the SHA-256 of all fields in the encoding described in docs/hashing.md. Headers on disk contain
  /// it, so a change of the encoding needs a new version; a golden test guards it.
  digest fingerprint() const;

  friend bool operator==(const space_spec&, const space_spec&) = default;
};

/// Says in which fields `there` differs, for people: "dtype is fp8 there and bf16 here; the salt differs". Salts and seeds
/// are not shown. Empty if nothing differs.
std::string differences(const space_spec& here, const space_spec& there);

inline bool has_trailing_pools(const space_spec& spec) {
  return std::any_of(spec.pools.begin(), spec.pools.end(),
                     [](const pool_spec& pool) { return pool.rule == hit_rule::trailing_chunks; });
}

// Pools that are declared by the shapes of their tensors instead of a number of bytes.

/// The pools for a declared pool: the pool itself with `object_bytes` computed from its tensors for chunks of
/// `chunk_tokens`, or, with `layer_groups` above 1, one pool per group, "NAME.0", "NAME.1", ..., so that a
/// chunk has an object per group of layers. A pool without tensors is returned unchanged. Errors
/// (`bad_request`): those of `object_shape::make` and `divide_layers`; layer groups without tensors;
/// `object_bytes` that contradict the tensors.
result<std::vector<pool_spec>> shaped_pools(const pool_spec& stated, uint32_t layer_groups,
                                            uint32_t chunk_tokens);

/// The shape for a pool of a valid spec. Error: the pool has no tensors.
result<object_shape> shape_of(const pool_spec& pool, uint32_t chunk_tokens);

} // namespace terrace
