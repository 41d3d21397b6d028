#include "cli/model_layers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

namespace terrace::cli {

namespace {

using layer_json = nlohmann::json;
using layer_kinds = std::vector<layer_kind>;

constexpr uint64_t number_max = 1 << 24;
constexpr uint64_t layers_max = 1 << 16;

tl::unexpected<failure> layers_error(const std::string& what) {
  return bad_usage("the model's configuration: " + what);
}

/// The field if it is there and not null.
const layer_json* field(const layer_json& config, const char* name) {
  auto found = config.find(name);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

std::string type_of_model(const layer_json& config) {
  const auto* type = field(config, "model_type");
  return type && type->is_string() ? type->get<std::string>() : std::string();
}

std::optional<layer_kind> kind_of(const std::string& name) {
  static constexpr std::pair<std::string_view, layer_kind> names[]{
      {"full_attention", layer_kind::full},
      {"attention", layer_kind::full},
      {"full", layer_kind::full},
      {"hybrid", layer_kind::full},
      {"global", layer_kind::full},
      {"sliding_attention", layer_kind::window},
      {"chunked_attention", layer_kind::window},
      {"sliding", layer_kind::window},
      {"local", layer_kind::window},
      {"local_attention", layer_kind::window},
      {"linear_attention", layer_kind::state},
      {"linear", layer_kind::state},
      {"mamba", layer_kind::state},
      {"mamba2", layer_kind::state},
      {"recurrent", layer_kind::state},
      {"conv", layer_kind::state},
      {"mlp", layer_kind::none},
      {"moe", layer_kind::none},
  };
  for (const auto& [known, kind] : names)
    if (known == name)
      return kind;
  return std::nullopt;
}

tl::unexpected<failure> unknown_kind(const char* list, const std::string& entry) {
  return bad_usage("the model's configuration: \"" + std::string(list) +
                   "\" has a kind of layer that is not known: " + entry);
}

outcome<void> as_many(const char* list, uint64_t layers, uint64_t found) {
  if (found == layers)
    return {};
  return layers_error("expected " + std::to_string(layers) + " entries in \"" + list + "\", found " +
                      std::to_string(found));
}

/// A list of one name for each layer; one of `repeats` begins anew until all layers have a kind.
outcome<layer_kinds> named_kinds(const layer_json& list, const char* name, uint64_t layers, bool repeats) {
  if (!list.is_array() || list.empty())
    return layers_error("expected a list in \"" + std::string(name) + "\", found " + list.dump());
  if (auto same = as_many(name, layers, repeats ? layers : list.size()); !same)
    return tl::unexpected(same.error());
  layer_kinds kinds;
  for (uint64_t layer = 0; layer < layers; ++layer) {
    const layer_json& entry = list[layer % list.size()];
    auto known = kind_of(entry.is_string() ? entry.get<std::string>() : std::string());
    if (!known)
      return unknown_kind(name, entry.dump());
    kinds.push_back(*known);
  }
  return kinds;
}

/// One number for each layer: 1 for attention to all tokens, 0 for `otherwise`.
outcome<layer_kinds> flagged_kinds(const layer_json& list, const char* name, uint64_t layers, layer_kind one,
                                   layer_kind zero) {
  if (!list.is_array())
    return layers_error("expected a list in \"" + std::string(name) + "\", found " + list.dump());
  if (auto same = as_many(name, layers, list.size()); !same)
    return tl::unexpected(same.error());
  layer_kinds kinds;
  for (const layer_json& entry : list) {
    if (entry != 0 && entry != 1)
      return unknown_kind(name, entry.dump());
    kinds.push_back(entry == 1 ? one : zero);
  }
  return kinds;
}

/// The indexes of the layers with attention, the first of which is `first`.
outcome<layer_kinds> indexed_kinds(const layer_json& list, const char* name, uint64_t layers,
                                   uint64_t first) {
  layer_kinds kinds(layers, layer_kind::state);
  if (!list.is_array())
    return layers_error("expected a list in \"" + std::string(name) + "\", found " + list.dump());
  for (const layer_json& entry : list) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() < first ||
        entry.get<uint64_t>() - first >= layers)
      return layers_error("expected numbers of layers (" + std::to_string(first) + " to " +
                          std::to_string(layers + first - 1) + ") in \"" + name + "\", found " +
                          entry.dump());
    kinds[entry.get<uint64_t>() - first] = layer_kind::full;
  }
  return kinds;
}

/// One letter for each layer, as Nemotron-H has it.
outcome<layer_kinds> lettered_kinds(const layer_json& text, const char* name, uint64_t layers) {
  if (!text.is_string())
    return layers_error("expected letters in \"" + std::string(name) + "\", found " + text.dump());
  const auto letters = text.get<std::string>();
  if (auto same = as_many(name, layers, letters.size()); !same)
    return tl::unexpected(same.error());
  layer_kinds kinds;
  for (char letter : letters) {
    if (letter == 'M')
      kinds.push_back(layer_kind::state);
    else if (letter == '*')
      kinds.push_back(layer_kind::full);
    else if (letter == '-' || letter == 'E') // an MLP, or one of experts
      kinds.push_back(layer_kind::none);
    else
      return unknown_kind(name, layer_json(std::string(1, letter)).dump());
  }
  return kinds;
}

/// Reads fields that list something layer by layer; nullopt if there are none.
outcome<std::optional<layer_kinds>> listed_kinds(const layer_json& config, uint64_t layers) {
  for (const char* name : {"layer_types", "layers_block_type"})
    if (const auto* list = field(config, name))
      return named_kinds(*list, name, layers, false);
  if (const auto* letters = field(config, "hybrid_override_pattern")) // nemotron_h
    return lettered_kinds(*letters, "hybrid_override_pattern", layers);
  if (const auto* list = field(config, "attn_type_list")) // minimax_text_01
    return flagged_kinds(*list, "attn_type_list", layers, layer_kind::full, layer_kind::state);
  if (const auto* list = field(config, "attn_layer_indices")) // bamba
    return indexed_kinds(*list, "attn_layer_indices", layers, 0);
  if (const auto* list = field(config, "full_attn_idxs")) // lfm2
    return indexed_kinds(*list, "full_attn_idxs", layers, 0);
  if (const auto* linear = field(config, "linear_attn_config"); linear && linear->is_object()) // kimi_linear
    if (const auto* list = field(*linear, "full_attn_layers"))
      return indexed_kinds(*list, "linear_attn_config.full_attn_layers", layers, 1);
  if (const auto* list = field(config, "block_types")) { // recurrent_gemma: its attention has a window
    auto kinds = named_kinds(*list, "block_types", layers, true);
    if (kinds && field(config, "attention_window_size"))
      std::replace(kinds->begin(), kinds->end(), layer_kind::full, layer_kind::window);
    return kinds;
  }
  // Llama 4: layers without positions see all tokens, the others a chunk.
  if (const auto* list = field(config, "no_rope_layers");
      list && !list->empty() && field(config, "attention_chunk_size"))
    return flagged_kinds(*list, "no_rope_layers", layers, layer_kind::window, layer_kind::full);
  return std::nullopt;
}

/// Every `period`th layer, from `first` on, is of another kind than the rest.
layer_kinds periodic(uint64_t layers, uint64_t period, uint64_t first, layer_kind there,
                     layer_kind elsewhere) {
  layer_kinds kinds(layers, elsewhere);
  for (uint64_t layer = first % period; layer < layers; layer += period)
    kinds[layer] = there;
  return kinds;
}

/// Reads fields that give a rule for the layers; nullopt if there are none.
outcome<std::optional<layer_kinds>> ruled_kinds(const layer_json& config, uint64_t layers, bool windows) {
  auto period = config_number(config, {"full_attention_interval"}); // linear attention between
  if (!period)
    return tl::unexpected(period.error());
  if (*period)
    return periodic(layers, **period, **period - 1, layer_kind::full, layer_kind::state);
  period = config_number(config, {"attn_layer_period"}); // Mamba between
  if (!period)
    return tl::unexpected(period.error());
  if (*period) {
    const auto* offset = field(config, "attn_layer_offset");
    return periodic(layers, **period, offset && offset->is_number_unsigned() ? offset->get<uint64_t>() : 0,
                    layer_kind::full, layer_kind::state);
  }
  if (!windows)
    return std::nullopt;
  if (const auto* letters = field(config, "sliding_window_pattern"); letters && letters->is_string()) {
    // EXAONE 4: "LLLG", and the last layer is global.
    const auto text = letters->get<std::string>();
    if (text.empty() || text.find_first_not_of("LG") != std::string::npos)
      return unknown_kind("sliding_window_pattern", letters->dump());
    layer_kinds kinds;
    for (uint64_t layer = 0; layer < layers; ++layer)
      kinds.push_back(text[layer % text.size()] == 'L' && layer + 1 < layers ? layer_kind::window
                                                                             : layer_kind::full);
    return kinds;
  }
  period = config_number(config, {"sliding_window_pattern"}); // windows between
  if (!period)
    return tl::unexpected(period.error());
  if (!*period) {
    const std::string type = type_of_model(config);
    if (type == "gemma2") // transformers' defaults, which these files leave out
      *period = 2;
    else if (type == "gemma3_text" || type == "gemma3")
      *period = 6;
    else if (type == "cohere2")
      *period = 4;
  }
  if (*period)
    return periodic(layers, **period, **period - 1, layer_kind::full, layer_kind::window);
  const auto* from = field(config, "max_window_layers"); // Qwen 2
  if (from && from->is_number_unsigned()) {
    layer_kinds kinds(layers, layer_kind::full);
    std::fill(kinds.begin() + static_cast<std::ptrdiff_t>(std::min(layers, from->get<uint64_t>())),
              kinds.end(), layer_kind::window);
    return kinds;
  }
  return std::nullopt;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Words of fields that are about layers, and not about their KV.
bool is_beside_kv(std::string_view name) {
  return has_any(name, {"moe",    "mlp",   "ffn",      "expert",       "dense", "norm", "rope",
                        "rotary", "quant", "sparsity", "intermediate", "eagle", "mtp",  "nextn",
                        "aux_",   "embed", "dropout",  "bias",         "token", "label"});
}

bool is_about_attention(std::string_view name) {
  return has_any(name, {"attn", "attention", "mamba", "ssm", "window", "linear", "hybrid", "recurrent",
                        "conv", "global", "local", "pattern", "block", "layer"});
}

/// A field that may say which layers have attention, in a way that is not known.
bool looks_like_layers(const std::string& name, const layer_json& value, uint64_t layers) {
  if (is_beside_kv(name))
    return false;
  if (value.is_array())
    return !value.empty() && (is_about_attention(name) || value.size() == layers);
  if (value.is_object())
    return is_about_attention(name) &&
           std::any_of(value.begin(), value.end(), [](const auto& part) { return part.is_array(); });
  if (value.is_string())
    return has_any(name, {"pattern"});
  if (value.is_boolean())
    return name == "use_cla" && value == true; // attention that reads the KV of the layer before
  if (!value.is_number() || value == 0)
    return false;
  // A state needs numbers that attention has not, so some layers have one.
  if (name.starts_with("mamba_") || name.starts_with("ssm_") || name.starts_with("linear_"))
    return true;
  return name == "layer_group_size" || name == "attention_window_size" || name == "window_size" ||
         (is_about_attention(name) &&
          has_any(name, {"interval", "period", "pattern", "every", "freq", "stride"}));
}

outcome<void> refuse_what_looks_like_layers(const layer_json& config, uint64_t layers) {
  static constexpr std::string_view known[]{
      "architectures",           "attention_chunk_size",  "attn_layer_offset",      "attn_layer_period",
      "full_attention_interval", "max_window_layers",     "no_rope_layer_interval", "num_hidden_layers",
      "sliding_window",          "sliding_window_pattern"};
  for (const auto& [name, value] : config.items()) {
    if (std::find(std::begin(known), std::end(known), name) != std::end(known) ||
        !looks_like_layers(name, value, layers))
      continue;
    auto text = value.dump();
    constexpr size_t shown_max = 60;
    if (text.size() > shown_max)
      text = text.substr(0, shown_max) + "...";
    return layers_error("\"" + name + "\": " + text +
                        " looks as if it says which layers have attention, and is not known here. Give the "
                        "kind of each layer as \"layer_types\", a list of " +
                        std::to_string(layers) +
                        " of full_attention, sliding_attention, linear_attention, mamba and mlp");
  }
  return {};
}

} // namespace

outcome<std::optional<uint64_t>> config_number(const layer_json& config,
                                               std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto* found = field(config, name);
    if (!found)
      continue;
    if (!found->is_number_unsigned() || found->get<uint64_t>() == 0 || found->get<uint64_t>() > number_max)
      return layers_error("expected a number of 1 to " + std::to_string(number_max) + " in \"" + name +
                          "\", found " + found->dump());
    return found->get<uint64_t>();
  }
  return std::nullopt;
}

outcome<uint64_t> needed_number(const layer_json& config, std::initializer_list<const char*> names) {
  auto found = config_number(config, names);
  if (!found)
    return tl::unexpected(found.error());
  if (!*found)
    return bad_usage("the model's configuration has no \"" + std::string(*names.begin()) +
                     "\": expected the config.json of a transformer, as transformers writes it");
  return **found;
}

outcome<model_layers> read_model_layers(const layer_json& config) {
  auto layers = needed_number(config, {"num_hidden_layers", "n_layer"});
  if (!layers)
    return tl::unexpected(layers.error());
  if (*layers > layers_max)
    return layers_error("expected at most " + std::to_string(layers_max) + " layers, found " +
                        std::to_string(*layers));
  auto window = config_number(config, {"sliding_window", "attention_chunk_size"});
  if (window && !*window && field(config, "block_types"))
    window = config_number(config, {"attention_window_size"});
  if (!window)
    return tl::unexpected(window.error());
  const auto* uses = field(config, "use_sliding_window");
  const bool windows = *window && (!uses || *uses != false);
  auto kinds = listed_kinds(config, *layers);
  if (kinds && !*kinds) {
    kinds = ruled_kinds(config, *layers, windows);
    if (kinds && !*kinds) {
      // Every layer of Falcon H1 has both, attention and a state.
      if (type_of_model(config) != "falcon_h1")
        if (auto clear = refuse_what_looks_like_layers(config, *layers); !clear)
          return tl::unexpected(clear.error());
      *kinds = layer_kinds(*layers, windows ? layer_kind::window : layer_kind::full);
    }
  }
  if (!kinds)
    return tl::unexpected(kinds.error());
  model_layers read;
  read.kinds = std::move(**kinds);
  auto shared =
      config_number(config, {"num_kv_shared_layers"}); // the last layers of Gemma 3n read others' KV
  if (const auto* count = field(config, "num_kv_shared_layers"); count && *count == 0)
    shared = std::optional<uint64_t>();
  if (!shared)
    return tl::unexpected(shared.error());
  if (*shared)
    std::fill(read.kinds.end() - static_cast<std::ptrdiff_t>(std::min<uint64_t>(**shared, *layers)),
              read.kinds.end(), layer_kind::none);
  if (std::find(read.kinds.begin(), read.kinds.end(), layer_kind::window) != read.kinds.end()) {
    if (!*window)
      return bad_usage("the model's configuration has layers with a window and no \"sliding_window\"");
    read.window_tokens = **window;
  }
  return read;
}

} // namespace terrace::cli
