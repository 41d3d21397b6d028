#include "cli/model_size.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

/// No field has a larger number: products of a few of them fit into 64 bits.
constexpr uint64_t number_max = 1 << 24;

/// The first of these fields that is there and not null, as a number.
outcome<std::optional<uint64_t>> number(const model_json& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto found = config.find(name);
    if (found == config.end() || found->is_null())
      continue;
    if (!found->is_number_unsigned() || found->get<uint64_t>() == 0 || found->get<uint64_t>() > number_max)
      return bad_usage("the model's configuration: expected a number of 1 to " + std::to_string(number_max) +
                       " in \"" + name + "\", found " + found->dump());
    return found->get<uint64_t>();
  }
  return std::nullopt;
}

outcome<uint64_t> needed(const model_json& config, std::initializer_list<const char*> names) {
  auto found = number(config, names);
  if (!found)
    return tl::unexpected(found.error());
  if (!*found)
    return bad_usage("the model's configuration has no \"" + std::string(*names.begin()) +
                     "\": expected the config.json of a transformer, as transformers writes it");
  return **found;
}

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
  auto rank = number(config, {"kv_lora_rank"});
  if (!rank)
    return tl::unexpected(rank.error());
  if (*rank) {
    latent = true;
    auto rope = needed(config, {"qk_rope_head_dim"});
    if (!rope)
      return tl::unexpected(rope.error());
    return (**rank + *rope) * bytes;
  }
  auto heads = needed(config, {"num_attention_heads", "n_head"});
  if (!heads)
    return tl::unexpected(heads.error());
  auto kv_heads = number(config, {"num_key_value_heads", "num_kv_heads"});
  if (!kv_heads)
    return tl::unexpected(kv_heads.error());
  auto width = number(config, {"head_dim"});
  if (!width)
    return tl::unexpected(width.error());
  if (!*width) {
    auto hidden = needed(config, {"hidden_size", "n_embd"});
    if (!hidden)
      return tl::unexpected(hidden.error());
    *width = *hidden / *heads;
  }
  return 2 * kv_heads->value_or(*heads) * **width * bytes; // keys and values
}

enum class layer_kind { full, window, state };

std::optional<layer_kind> kind_of(const std::string& name) {
  if (name == "full_attention" || name == "attention" || name == "hybrid" || name == "global")
    return layer_kind::full;
  if (name == "sliding_attention" || name == "chunked_attention" || name == "local")
    return layer_kind::window;
  if (name == "linear_attention" || name == "mamba" || name == "mamba2" || name == "recurrent" ||
      name == "conv")
    return layer_kind::state;
  return std::nullopt;
}

/// One of the layers in a configuration that gives a rule instead of a list.
outcome<layer_kind> kind_by_rule(const model_json& config, uint64_t layer, bool windows) {
  auto period = number(config, {"full_attention_interval"}); // linear attention between
  if (!period)
    return tl::unexpected(period.error());
  if (*period)
    return (layer + 1) % **period == 0 ? layer_kind::full : layer_kind::state;
  period = number(config, {"attn_layer_period"}); // Mamba between
  if (!period)
    return tl::unexpected(period.error());
  if (*period) {
    auto offset = config.find("attn_layer_offset");
    const bool has = offset != config.end() && offset->is_number_unsigned();
    const uint64_t first = has ? offset->get<uint64_t>() % **period : 0;
    return layer % **period == first ? layer_kind::full : layer_kind::state;
  }
  period = number(config, {"sliding_window_pattern"}); // windows between
  if (!period)
    return tl::unexpected(period.error());
  if (*period && windows)
    return (layer + 1) % **period == 0 ? layer_kind::full : layer_kind::window;
  return windows ? layer_kind::window : layer_kind::full;
}

outcome<void> count_layers(const model_json& config, model_size& model) {
  auto layers = needed(config, {"num_hidden_layers", "n_layer"});
  if (!layers)
    return tl::unexpected(layers.error());
  auto window = number(config, {"sliding_window", "attention_chunk_size"});
  if (!window)
    return tl::unexpected(window.error());
  auto uses = config.find("use_sliding_window");
  const bool windows = *window && (uses == config.end() || *uses != false);
  const char* list = config.contains("layer_types") ? "layer_types" : "layers_block_type";
  const auto named = config.find(list);
  const bool listed = named != config.end() && named->is_array();
  if (listed && named->size() != *layers)
    return bad_usage("the model's configuration: expected " + std::to_string(*layers) + " entries in \"" +
                     list + "\", found " + std::to_string(named->size()));
  for (uint64_t layer = 0; layer < *layers; ++layer) {
    layer_kind kind = layer_kind::full;
    if (listed) {
      const model_json& entry = (*named)[layer];
      auto known = kind_of(entry.is_string() ? entry.get<std::string>() : std::string());
      if (!known)
        return bad_usage("the model's configuration: \"" + std::string(list) +
                         "\" has a kind of layer that is not known: " + entry.dump());
      kind = *known;
    } else if (auto ruled = kind_by_rule(config, layer, windows); ruled) {
      kind = *ruled;
    } else {
      return tl::unexpected(ruled.error());
    }
    ++(kind == layer_kind::full     ? model.full_layers
       : kind == layer_kind::window ? model.window_layers
                                    : model.state_layers);
  }
  model.window_tokens = model.window_layers != 0 ? window->value_or(0) : 0;
  if (model.window_layers != 0 && model.window_tokens == 0)
    return bad_usage("the model's configuration has layers with a window and no \"sliding_window\"");
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
