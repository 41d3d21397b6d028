// The structure of an object's bytes: one or more tensors, back to back.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

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

} // namespace terrace
