// Batches as vLLM publishes them, checked byte by byte where it matters, and read back.
#include "cli/kv_event_batch.hpp"

#include "shown_msgpack.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace::cli {
namespace {

block_change change_of(bool stored, tier_kind tier, uint8_t byte) {
  block_change made{stored, tier, {}};
  made.chunk.bytes.fill(byte);
  return made;
}

TEST(KvEventBatch, EventsAreMapsWithTheirType) {
  std::vector<block_change> changes{change_of(true, tier_kind::host, 'a'),
                                    change_of(true, tier_kind::host, 'b'),
                                    change_of(false, tier_kind::host, 'a')};
  auto batch = encode_kv_events(changes, false, 1.5, {.block_size = 16});
  EXPECT_EQ(
      shown(batch),
      "[1.5,[{\"type\":\"BlockStored\",\"block_hashes\":[\"BIN(size:32)\",\"BIN(size:32)\"],"
      "\"parent_block_hash\":null,\"token_ids\":[],\"block_size\":16,\"lora_id\":null,\"medium\":\"CPU\","
      "\"lora_name\":null,\"locality\":\"LOCAL\"},{\"type\":\"BlockRemoved\",\"block_hashes\":[\"BIN(size:32)"
      "\"],"
      "\"medium\":\"CPU\",\"locality\":\"LOCAL\"}]]");
  EXPECT_NE(batch.find(std::string(32, 'b')), std::string::npos);
}

TEST(KvEventBatch, OnlyRemoteTiersAreRemote) {
  for (tier_kind tier : all_tiers)
    for (bool stored : {true, false}) {
      const block_change change = change_of(stored, tier, 1);
      const std::string expected = shared_by_machines(tier) ? "\"REMOTE\"" : "\"LOCAL\"";
      const auto batch = shown(encode_kv_events({&change, 1}, false, 0, {}));
      EXPECT_NE(batch.find("\"locality\":" + expected), std::string::npos) << batch;
    }
  const block_change remote = change_of(true, tier_kind::remote, 1);
  EXPECT_NE(shown(encode_kv_events({&remote, 1}, false, 0, {})).find("\"medium\":\"STORAGE\""),
            std::string::npos);
}

TEST(KvEventBatch, EventsAreArraysInTheEarlierForm) {
  std::vector<block_change> changes{change_of(true, tier_kind::disk, 1),
                                    change_of(false, tier_kind::host, 2)};
  kv_event_options with{.form = kv_event_form::array, .block_size = 256, .integer_hashes = true};
  EXPECT_EQ(
      shown(encode_kv_events(changes, true, 2, with)),
      "[2,[[\"AllBlocksCleared\"],[\"BlockStored\",[72340172838076673],null,[],256,null,\"STORAGE\",null],"
      "[\"BlockRemoved\",[144680345676153346],\"CPU\"]]]");
}

TEST(KvEventBatch, ABeginningIsToldAlone) {
  EXPECT_EQ(encode_kv_events({}, false, 0, {}), "");
  EXPECT_EQ(shown(encode_kv_events({}, true, 0, {})), "[0,[{\"type\":\"AllBlocksCleared\"}]]");
}

TEST(KvEventBatch, DigestsHaveTheWidthInWhichTheyWereSent) {
  for (size_t width : {8, 16, 20, 24, 32}) {
    block_change change{false, tier_kind::host, {}};
    for (size_t i = 0; i < width; ++i)
      change.chunk.bytes[i] = static_cast<uint8_t>(i + 1);
    change.chunk.bytes[width - 1] = 0; // every 256th digest ends with a zero
    auto batch = encode_kv_events({&change, 1}, false, 0, {});
    EXPECT_NE(shown(batch).find("[\"BIN(size:" + std::to_string(width) + ")\"]"), std::string::npos)
        << shown(batch);
    uint64_t last = 0;
    for (size_t i = width - 8; i < width; ++i)
      last = last << 8 | change.chunk.bytes[i];
    auto integers = shown(encode_kv_events({&change, 1}, false, 0, {.integer_hashes = true}));
    EXPECT_NE(integers.find("[" + std::to_string(last) + "]"), std::string::npos) << integers;
  }
}

} // namespace
} // namespace terrace::cli
