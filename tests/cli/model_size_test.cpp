#include "cli/model_size.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using ::testing::HasSubstr;

model_size size_of(const char* text, const char* dtype = "") {
  auto read = read_model_size(text, dtype);
  EXPECT_TRUE(read) << read.error().text;
  return read.value_or(model_size{});
}

std::string why_not(const char* text, const char* dtype = "") {
  auto read = read_model_size(text, dtype);
  EXPECT_FALSE(read);
  return read ? std::string() : read.error().text;
}

TEST(ModelSize, CountsKeysAndValuesOfGroupedHeads) {
  // Llama 3.1 8B: 2 x 32 layers x 8 heads x 128 x 2 bytes.
  auto model = size_of(
      R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
                           "num_key_value_heads": 8, "torch_dtype": "bfloat16"})");
  EXPECT_EQ(model.token_bytes(), 128u << 10);
  EXPECT_EQ(model.prompt_bytes(8192), uint64_t{1} << 30);
  EXPECT_EQ(model.type, "llama");
  EXPECT_FALSE(model.latent);
}

TEST(ModelSize, HasAsManyKvHeadsAsHeadsIfNoneAreNamed) {
  EXPECT_EQ(
      size_of(R"({"n_embd": 768, "n_head": 12, "n_layer": 12, "torch_dtype": "float32"})").token_bytes(),
      2u * 12 * 768 * 4);
}

TEST(ModelSize, UsesTheTypeThatTheEngineIsTold) {
  const char* text =
      R"({"head_dim": 128, "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
                         "dtype": "bfloat16"})";
  EXPECT_EQ(size_of(text).token_bytes(), 2 * size_of(text, "fp8").token_bytes());
}

TEST(ModelSize, CountsOneLatentVectorForAllHeads) {
  // DeepSeek V3: 61 layers x (512 + 64) x 2 bytes.
  auto model = size_of(R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128,
                           "hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "torch_dtype": "bfloat16"})");
  EXPECT_TRUE(model.latent);
  EXPECT_EQ(model.token_bytes(), 61u * 576 * 2);
}

TEST(ModelSize, AWindowStopsGrowing) {
  auto model =
      size_of(R"({"num_hidden_layers": 4, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 100,
                           "torch_dtype": "float16", "layer_types":
                           ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(model.full_layers, 1u);
  EXPECT_EQ(model.window_layers, 3u);
  const uint64_t layer = 2 * 64 * 2;
  EXPECT_EQ(model.token_bytes(), layer);
  EXPECT_EQ(model.prompt_bytes(50), 50 * 4 * layer);
  EXPECT_EQ(model.prompt_bytes(1000), 1000 * layer + 100 * 3 * layer);
}

TEST(ModelSize, KnowsTheRulesThatStandForAList) {
  auto gemma = size_of(R"({"text_config": {"num_hidden_layers": 12, "num_attention_heads": 1, "head_dim": 64,
                           "sliding_window": 512, "sliding_window_pattern": 6}})");
  EXPECT_EQ(gemma.full_layers, 2u);
  EXPECT_EQ(gemma.window_layers, 10u);
  EXPECT_EQ(gemma.dtype, "bfloat16"); // the inner configuration names none
  auto next = size_of(
      R"({"num_hidden_layers": 8, "num_attention_heads": 1, "head_dim": 64, "full_attention_interval": 4})");
  EXPECT_EQ(next.full_layers, 2u);
  EXPECT_EQ(next.state_layers, 6u);
  auto jamba =
      size_of(R"({"num_hidden_layers": 8, "num_attention_heads": 1, "head_dim": 64, "attn_layer_period": 8,
                           "attn_layer_offset": 4})");
  EXPECT_EQ(jamba.full_layers, 1u);
  auto all = size_of(
      R"({"num_hidden_layers": 8, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 4096})");
  EXPECT_EQ(all.window_layers, 8u);
  EXPECT_EQ(all.token_bytes(), 0u);
  auto unused =
      size_of(R"({"num_hidden_layers": 8, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 4096,
                            "use_sliding_window": false})");
  EXPECT_EQ(unused.full_layers, 8u);
}

TEST(ModelSize, SaysWhatIsWrong) {
  EXPECT_THAT(why_not("[]"), HasSubstr("expected the config.json of a model"));
  EXPECT_THAT(why_not("not JSON"), HasSubstr("expected the config.json of a model"));
  EXPECT_THAT(why_not("{}"), HasSubstr("has no \"num_attention_heads\""));
  EXPECT_THAT(why_not(R"({"num_attention_heads": 8, "head_dim": 64})"),
              HasSubstr("has no \"num_hidden_layers\""));
  EXPECT_THAT(why_not(R"({"num_attention_heads": 8})"), HasSubstr("has no \"hidden_size\""));
  EXPECT_THAT(why_not(R"({"num_attention_heads": -8, "head_dim": 64})"), HasSubstr("found -8"));
  EXPECT_THAT(why_not(R"({"num_attention_heads": "8", "head_dim": 64})"), HasSubstr("found \"8\""));
  EXPECT_THAT(why_not(R"({"kv_lora_rank": 512, "num_hidden_layers": 2})"),
              HasSubstr("has no \"qk_rope_head_dim\""));
  EXPECT_THAT(why_not(R"({"num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 2})", "nibble"),
              HasSubstr("found 'nibble'"));
  EXPECT_THAT(
      why_not(
          R"({"num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 2, "layer_types": ["attention"]})"),
      HasSubstr("expected 2 entries"));
  EXPECT_THAT(
      why_not(
          R"({"num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 1, "layer_types": ["dance"]})"),
      HasSubstr("\"dance\""));
  EXPECT_THAT(why_not(R"({"num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 1,
                          "layer_types": ["sliding_attention"]})"),
              HasSubstr("no \"sliding_window\""));
}

} // namespace
} // namespace terrace::cli
