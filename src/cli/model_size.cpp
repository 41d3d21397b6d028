#include "cli/model_size.hpp"

#include "cli/model_layers.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <optional>
#include <utility>

namespace terrace::cli {

namespace {

using model_json = nlohmann::json;

struct kv_type {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array kv_types{kv_type{"float32", 4},       kv_type{"float16", 2},  kv_type{"bfloat16", 2},
                              kv_type{"fp8", 1},           kv_type{"fp8_e4m3", 1}, kv_type{"fp8_e5m2", 1},
                              kv_type{"float8_e4m3fn", 1}, kv_type{"int8", 1}};

std::string string_of(const model_json& config, const char* name) {
  auto found = config.find(name);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

outcome<uint64_t> type_bytes(const std::string& dtype) {
  std::string names;
  for (const kv_type& type : kv_types) {
    if (type.name == dtype)
      return type.bytes;
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return bad_usage("expected a type of KV (" + names + "), found '" + dtype +
                   "'; --kv-dtype says which one the engine uses");
}

/// Bytes of one token in one layer.
outcome<uint64_t> layer_bytes(const model_json& config, uint64_t bytes, bool& latent) {
  auto rank = config_number(config, {"kv_lora_rank"});
  if (!rank)
    return tl::unexpected(rank.error());
  if (*rank) {
    latent = true;
    auto rope = needed_number(config, {"qk_rope_head_dim"});
    if (!rope)
      return tl::unexpected(rope.error());
    return (**rank + *rope) * bytes;
  }
  auto heads = needed_number(config, {"num_attention_heads", "n_head"});
  if (!heads)
    return tl::unexpected(heads.error());
  auto kv_heads = config_number(config, {"num_key_value_heads", "num_kv_heads"});
  if (!kv_heads)
    return tl::unexpected(kv_heads.error());
  auto width = config_number(config, {"head_dim", "attention_head_dim"});
  if (!width)
    return tl::unexpected(width.error());
  if (!*width) {
    auto hidden = needed_number(config, {"hidden_size", "n_embd"});
    if (!hidden)
      return tl::unexpected(hidden.error());
    *width = *hidden / *heads;
  }
  return 2 * kv_heads->value_or(*heads) * **width * bytes; // keys and values
}

outcome<void> count_layers(const model_json& config, model_size& model) {
  auto layers = read_model_layers(config);
  if (!layers)
    return tl::unexpected(layers.error());
  for (layer_kind kind : layers->kinds)
    ++(kind == layer_kind::full     ? model.full_layers
       : kind == layer_kind::window ? model.window_layers
       : kind == layer_kind::state  ? model.state_layers
                                    : model.other_layers);
  model.window_tokens = layers->window_tokens;
  return {};
}

} // namespace

outcome<model_size> read_model_size(std::string_view text, std::string_view kv_dtype) {
  model_json config = model_json::parse(text, nullptr, false);
  if (!config.is_object())
    return bad_usage("expected the config.json of a model, which is a JSON object");
  model_size model;
  model.type = string_of(config, "model_type");
  if (auto inner = config.find("text_config"); inner != config.end() && inner->is_object()) {
    model_json text_part = *inner; // a model with vision: its KV is that of the text
    config = std::move(text_part);
  }
  model.dtype = kv_dtype.empty() ? string_of(config, config.contains("dtype") ? "dtype" : "torch_dtype")
                                 : std::string(kv_dtype);
  if (model.dtype.empty())
    model.dtype = "bfloat16"; // an inner configuration often names none
  auto bytes = type_bytes(model.dtype);
  if (!bytes)
    return tl::unexpected(bytes.error());
  auto layer = layer_bytes(config, *bytes, model.latent);
  if (!layer)
    return tl::unexpected(layer.error());
  model.layer_token_bytes = *layer;
  if (auto counted = count_layers(config, model); !counted)
    return tl::unexpected(counted.error());
  return model;
}

} // namespace terrace::cli
