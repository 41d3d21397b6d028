// Batches as vLLM publishes them, byte by byte where it matters, and read back.
#include "cli/kv_event_batch.hpp"

#include "shown_msgpack.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace::cli {
namespace {

client::event event_of(client::event_kind what, tier_kind tier, uint8_t byte, uint16_t pool = 0) {
  client::event made;
  made.what = what;
  made.tier = tier;
  made.pool = pool;
  made.chunk.bytes.fill(byte);
  return made;
}

TEST(KvEventBatch, EventsAreMapsWithTheirType) {
  std::vector<client::event> events{event_of(client::event_kind::admit, tier_kind::host, 'a'),
                                    event_of(client::event_kind::admit, tier_kind::host, 'b'),
                                    event_of(client::event_kind::demote, tier_kind::host, 'a')};
  auto batch = encode_kv_events(events, false, 1.5, {.block_size = 16});
  EXPECT_EQ(
      shown(batch),
      "[1.5,[{\"type\":\"BlockStored\",\"block_hashes\":[\"BIN(size:32)\",\"BIN(size:32)\"],"
      "\"parent_block_hash\":null,\"token_ids\":[],\"block_size\":16,\"lora_id\":null,\"medium\":\"CPU\","
      "\"lora_name\":null},{\"type\":\"BlockRemoved\",\"block_hashes\":[\"BIN(size:32)\"],\"medium\":\"CPU\"}"
      "]]");
  EXPECT_NE(batch.find(std::string(32, 'b')), std::string::npos);
}

TEST(KvEventBatch, EventsAreArraysInTheEarlierForm) {
  std::vector<client::event> events{event_of(client::event_kind::admit, tier_kind::disk, 1),
                                    event_of(client::event_kind::clear, tier_kind::host, 2)};
  kv_event_options with{.form = kv_event_form::array, .block_size = 256, .integer_hashes = true};
  EXPECT_EQ(
      shown(encode_kv_events(events, true, 2, with)),
      "[2,[[\"AllBlocksCleared\"],[\"BlockStored\",[72340172838076673],null,[],256,null,\"STORAGE\",null],"
      "[\"BlockRemoved\",[144680345676153346],\"CPU\"]]]");
}

TEST(KvEventBatch, OtherPoolsAreNotTold) {
  std::vector<client::event> events{event_of(client::event_kind::admit, tier_kind::host, 'a', 1)};
  EXPECT_EQ(encode_kv_events(events, false, 0, {}), "");
  EXPECT_EQ(shown(encode_kv_events(events, true, 0, {})), "[0,[{\"type\":\"AllBlocksCleared\"}]]");
}

} // namespace
} // namespace terrace::cli
