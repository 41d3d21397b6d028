#include "index/extra_keys.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

std::vector<uint8_t> bytes(std::span<const uint8_t> encoded) { return {encoded.begin(), encoded.end()}; }

TEST(ExtraKeys, AreNothingForABlockWithoutAny) {
  extra_keys keys{.items = {{"i", 16, 16}}, .salt = "s"};
  extra_key_encoder encoder(keys, extra_key_form::vllm);
  EXPECT_FALSE(encoder.block(0, 16).empty()); // the salt
  EXPECT_FALSE(encoder.block(16, 16).empty());
  EXPECT_TRUE(encoder.block(32, 16).empty());
}

TEST(ExtraKeys, ComeInVllmsOrder) {
  extra_keys keys{.lora = "l", .items = {{"i", 3, 40}}, .salt = "s"};
  extra_key_encoder encoder(keys, extra_key_form::vllm);
  EXPECT_EQ(bytes(encoder.block(0, 16)),
            (std::vector<uint8_t>{0x83, 0x61, 'l', 0x82, 0x61, 'i', 0x03, 0x61, 's'}));
  EXPECT_EQ(
      bytes(encoder.block(32, 16)), // the item began 29 tokens earlier; the salt is in the first block only
      (std::vector<uint8_t>{0x82, 0x61, 'l', 0x82, 0x61, 'i', 0x38, 28}));
  EXPECT_EQ(bytes(encoder.block(48, 16)), (std::vector<uint8_t>{0x81, 0x61, 'l'}));
}

TEST(ExtraKeys, HaveAPlaceForEachKind) {
  extra_keys keys{.lora = "l", .items = {{"i", 3, 40}}, .salt = "s"};
  extra_key_encoder encoder(keys, extra_key_form::by_kind);
  EXPECT_EQ(bytes(encoder.block(0, 16)),
            (std::vector<uint8_t>{0x83, 0x61, 'l', 0x81, 0x82, 0x61, 'i', 0x03, 0x61, 's'}));
  EXPECT_EQ(bytes(encoder.block(48, 16)), (std::vector<uint8_t>{0x83, 0x61, 'l', 0x80, 0xf6}));
  extra_keys salted{.salt = "s"};
  extra_key_encoder alone(salted, extra_key_form::by_kind);
  EXPECT_EQ(bytes(alone.block(0, 16)), (std::vector<uint8_t>{0x83, 0xf6, 0x80, 0x61, 's'}));
  EXPECT_TRUE(alone.block(16, 16).empty()) << "the salt is in the first block only";
}

TEST(ExtraKeys, HoldEveryItemThatOverlapsTheBlock) {
  extra_keys keys{.items = {{"a", 0, 2}, {"b", 2, 2}, {"c", 15, 1}, {"d", 16, 1}}};
  extra_key_encoder encoder(keys, extra_key_form::vllm);
  EXPECT_EQ(encoder.block(0, 16)[0], 0x83); // a, b, c
  EXPECT_EQ(encoder.block(16, 16)[0], 0x81);
}

TEST(ExtraKeys, AreRefusedWhenOutOfOrderEmptyOrTooLong) {
  std::string long_text(extra_keys::text_bytes_max + 1, 'x');
  const extra_keys wrong[] = {
      {.items = {{"a", 5, 5}, {"b", 9, 1}}},
      {.items = {{"a", 5, 5}, {"b", 0, 5}}},
      {.items = {{"a", 5, 0}}},
      {.items = {{"", 5, 1}}},
      {.items = {{long_text, 5, 1}}},
      {.items = std::vector<media_item>(extra_keys::items_max + 1)},
      {.lora = long_text},
      {.salt = long_text},
  };
  for (auto& keys : wrong) {
    auto valid = keys.validate();
    ASSERT_FALSE(valid);
    EXPECT_EQ(valid.error().code, errc::bad_request);
    EXPECT_NE(valid.error().text.find("expected"), std::string::npos);
  }
  EXPECT_TRUE((extra_keys{.items = {{"a", 4'294'967'295, 4'294'967'295}}}.validate()));
}

} // namespace
} // namespace terrace::test
