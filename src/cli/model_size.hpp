// The KV of a model, from the configuration that its weights come with (config.json of Hugging Face's transformers).
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace terrace::cli {

/// The names of fields are those of transformers' configuration classes. A layer with a sliding window keeps the last tokens
/// only, and one with a state (Mamba, linear attention) keeps no KV: its state has one size for any prompt.
struct model_size {
  std::string type;               ///< `model_type`, such as "llama"
  std::string dtype;              ///< of the KV, such as "bfloat16"
  bool latent = false;            ///< multi-head latent attention: one vector for all heads
  uint32_t full_layers = 0;       ///< layers whose KV grows with the prompt
  uint32_t window_layers = 0;     ///< layers with a sliding window
  uint32_t state_layers = 0;      ///< layers with a state
  uint32_t other_layers = 0;      ///< layers without KV of their own and without a state, such as an MLP
  uint64_t window_tokens = 0;     ///< 0: no window
  uint64_t layer_token_bytes = 0; ///< bytes of one token in one layer with KV

  /// Bytes that each further token of a long prompt takes.
  uint64_t token_bytes() const { return full_layers * layer_token_bytes; }
  /// Bytes of a prompt, its windows included.
  uint64_t prompt_bytes(uint64_t tokens) const {
    return tokens * token_bytes() +
           (tokens < window_tokens ? tokens : window_tokens) * window_layers * layer_token_bytes;
  }
};

/// Reads the text of a config.json. `kv_dtype` replaces the type that the configuration names; empty: it is used. Errors
/// (`usage`) name the field that is missing or has an unknown value. Pure.
outcome<model_size> read_model_size(std::string_view text, std::string_view kv_dtype);

} // namespace terrace::cli
