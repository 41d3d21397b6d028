#include "cli/model_layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace terrace::cli {
namespace model_layers_test {

using ::testing::HasSubstr;

/// One letter for each layer: Full, Window, State, and - for none.
std::string kinds_of(const std::string& text) {
  auto read = read_model_layers(nlohmann::json::parse(text));
  EXPECT_TRUE(read) << read.error().text;
  std::string letters;
  for (layer_kind kind : read ? read->kinds : std::vector<layer_kind>())
    letters += "FWS-"[static_cast<size_t>(kind)];
  return letters;
}

std::string why_not(const std::string& text) {
  auto read = read_model_layers(nlohmann::json::parse(text));
  EXPECT_FALSE(read);
  return read ? std::string() : read.error().text;
}

TEST(ModelLayers, ReadsTheLettersOfNemotronH) {
  EXPECT_EQ(
      kinds_of(R"({"model_type": "nemotron_h", "num_hidden_layers": 8, "hybrid_override_pattern": "M-M-M*-E",
                         "mamba_num_heads": 128})"),
      "S-S-SF--");
  EXPECT_THAT(why_not(R"({"num_hidden_layers": 3, "hybrid_override_pattern": "M-"})"),
              HasSubstr("expected 3 entries"));
  EXPECT_THAT(why_not(R"({"num_hidden_layers": 2, "hybrid_override_pattern": "M?"})"), HasSubstr("\"?\""));
}

TEST(ModelLayers, ReadsTheLayersWithAttentionOfBambaLfm2AndKimiLinear) {
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "bamba", "num_hidden_layers": 5, "attn_layer_indices": [1, 4], "mamba_d_state": 128})"),
      "SFSSF");
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "lfm2", "num_hidden_layers": 4, "full_attn_idxs": [0, 3], "conv_L_cache": 3})"),
      "FSSF");
  // These begin with 1.
  EXPECT_EQ(kinds_of(R"({"model_type": "kimi_linear", "num_hidden_layers": 5, "linear_attn_config":
                         {"full_attn_layers": [4, 5], "kda_layers": [1, 2, 3], "num_heads": 32}})"),
            "SSSFF");
  EXPECT_THAT(why_not(R"({"num_hidden_layers": 5, "attn_layer_indices": [5]})"), HasSubstr("(0 to 4)"));
  EXPECT_THAT(why_not(R"({"num_hidden_layers": 5, "linear_attn_config": {"full_attn_layers": [0]}})"),
              HasSubstr("(1 to 5)"));
}

TEST(ModelLayers, ReadsTheFlagsOfMiniMax) {
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "minimax_text_01", "num_hidden_layers": 4, "attn_type_list": [0, 0, 0, 1]})"),
      "SSSF");
  EXPECT_THAT(why_not(R"({"num_hidden_layers": 1, "attn_type_list": [2]})"), HasSubstr("not known: 2"));
}

TEST(ModelLayers, RepeatsTheBlocksOfRecurrentGemmaWhoseAttentionHasAWindow) {
  const char* text =
      R"({"model_type": "recurrent_gemma", "num_hidden_layers": 8, "attention_window_size": 2048,
                         "block_types": ["recurrent", "recurrent", "attention"], "conv1d_width": 4})";
  EXPECT_EQ(kinds_of(text), "SSWSSWSS");
  EXPECT_EQ(read_model_layers(nlohmann::json::parse(text))->window_tokens, 2048u);
}

TEST(ModelLayers, KnowsTheRulesOfModelsWithWindows) {
  EXPECT_EQ(kinds_of(R"({"model_type": "gemma2", "num_hidden_layers": 4, "sliding_window": 4096})"), "WFWF");
  EXPECT_EQ(kinds_of(R"({"model_type": "gemma3_text", "num_hidden_layers": 7, "sliding_window": 1024})"),
            "WWWWWFW");
  EXPECT_EQ(kinds_of(R"({"model_type": "exaone4", "num_hidden_layers": 6, "sliding_window": 4096,
                         "sliding_window_pattern": "LLLG"})"),
            "WWWFWF");
  EXPECT_EQ(kinds_of(R"({"model_type": "llama4_text", "num_hidden_layers": 4, "attention_chunk_size": 8192,
                         "no_rope_layers": [1, 1, 1, 0]})"),
            "WWWF");
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "qwen2", "num_hidden_layers": 4, "sliding_window": 4096, "use_sliding_window": true,
                         "max_window_layers": 3})"),
      "FFFW");
}

TEST(ModelLayers, LayersThatReadTheKvOfOthersKeepNone) {
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "gemma3n_text", "num_hidden_layers": 4, "sliding_window": 512, "num_kv_shared_layers": 2,
                         "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"),
      "WF--");
}

TEST(ModelLayers, AFieldThatLooksLikeLayersAndIsNotKnownIsNamed) {
  const char* unknown[][2]{
      {"hybrid_layer_pattern", "[0, 1, 1, 1]"},
      {"full_attention_idx", "[3]"},
      {"block_configs", R"([{"attention": {"no_op": true}}])"},
      {"compress_ratios", "[0, 4, 4, 128]"},
      {"attention_types", R"([[["global", "local"], 2]])"},
      {"sparse_attn_config", R"({"dense_at": [1, 2]})"},
      {"layer_pattern", "\"AABB\""},
      {"global_attn_every_n_layers", "3"},
      {"mamba_step", "2"},
      {"layer_group_size", "5"},
      {"linear_key_head_dim", "128"},
      {"window_size", "256"},
      {"use_cla", "true"},
  };
  for (const auto& [name, value] : unknown) {
    auto text = why_not("{\"num_hidden_layers\": 4, \"" + std::string(name) + "\": " + value + "}");
    EXPECT_THAT(text, HasSubstr("\"" + std::string(name) + "\""));
    EXPECT_THAT(text, HasSubstr("\"layer_types\""));
  }
}

TEST(ModelLayers, FieldsOfOrdinaryModelsDoNotLookLikeLayers) {
  EXPECT_EQ(
      kinds_of(R"({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM", "a", "b", "c"],
                         "num_hidden_layers": 4, "attention_bias": false, "attention_dropout": 0.0,
                         "first_k_dense_replace": 3, "moe_layer_freq": 1, "num_nextn_predict_layers": 1, "eos_token_id": [1, 2],
                         "quantization_config": {"weight_block_size": [128, 128], "ignored_layers": ["lm_head"]},
                         "rope_scaling": {"factor": 40}, "aux_loss_alpha": 0.001})"),
      "FFFF");
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "qwen3_moe", "num_hidden_layers": 4, "mlp_only_layers": [0, 1], "decoder_sparse_step": 1,
                         "sliding_window": null, "use_sliding_window": false, "max_window_layers": 28})"),
      "FFFF");
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "smollm3", "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4,
                         "attn_implementation": "eager", "window_attn_note": null, "layer_norm_eps": 1e-5})"),
      "FFFF");
  EXPECT_EQ(
      kinds_of(
          R"({"model_type": "falcon_h1", "num_hidden_layers": 2, "mamba_d_state": 256, "attn_layer_indices": null})"),
      "FF");
}

} // namespace model_layers_test
} // namespace terrace::cli
