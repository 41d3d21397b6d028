// Which layers of a model keep KV, from its config.json.
#pragma once

#include "cli/failure.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace terrace::cli {

enum class layer_kind : uint8_t {
  full,   ///< attention: its KV grows with the prompt
  window, ///< attention to the last tokens only
  state,  ///< Mamba, linear attention, a convolution: a state of one size
  none,   ///< an MLP that counts as a layer, or attention that reads the KV of another layer
};

struct model_layers {
  std::vector<layer_kind> kinds;
  uint64_t window_tokens = 0; ///< 0: no layer has a window
};

/// Reads the number of layers and the kind of each. Configurations say it as a list of names, of numbers or of letters, as
/// the indexes of layers with attention, or as a period. One that says it in a way that is not known, or has a field that
/// looks so, is an error (`usage`) that names the field: a guess would be wrong by a factor. Pure.
outcome<model_layers> read_model_layers(const nlohmann::json& config);

/// The first of these fields that is there and not null, as a number of 1 to 2^24: products of a few fit into 64 bits.
outcome<std::optional<uint64_t>> config_number(const nlohmann::json& config,
                                               std::initializer_list<const char*> names);
/// Fails if none is there.
outcome<uint64_t> needed_number(const nlohmann::json& config, std::initializer_list<const char*> names);

} // namespace terrace::cli
