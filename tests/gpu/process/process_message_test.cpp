#include "gpu/process/process_message.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

process_message sample() {
  process_message message;
  message.verb = process_verb::load;
  message.code = errc::gone;
  message.id = 7;
  message.region = 8;
  message.bytes = 9;
  message.arena = 13;
  message.page = 14;
  message.signals = 15;
  message.offset = 16;
  message.signal = {10, 11};
  message.handle.fill(std::byte{12});
  message.copies = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
  message.extents.resize(2);
  message.extents[1] = {17, 18, 19, 20, {}};
  message.extents[1].expected.identity.generation = 21;
  message.extents[1].expected.payload_bytes = 22;
  message.text = "why";
  return message;
}

TEST(ProcessMessage, ArrivesAsItWasSent) {
  auto read = decode_process_message(encode(sample()));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->verb, process_verb::load);
  EXPECT_EQ(read->code, errc::gone);
  EXPECT_EQ(read->id, 7U);
  EXPECT_EQ(read->region, 8U);
  EXPECT_EQ(read->bytes, 9U);
  EXPECT_EQ(read->arena, 13U);
  EXPECT_EQ(read->page, 14U);
  EXPECT_EQ(read->signals, 15U);
  EXPECT_EQ(read->offset, 16U);
  EXPECT_EQ(read->signal.slot, 10U);
  EXPECT_EQ(read->signal.value, 11U);
  EXPECT_EQ(read->handle, sample().handle);
  ASSERT_EQ(read->copies.size(), 2U);
  EXPECT_EQ(read->copies[1].region_offset, 7U);
  EXPECT_EQ(read->copies[1].count, 12U);
  ASSERT_EQ(read->extents.size(), 2U);
  EXPECT_EQ(read->extents[1].file, 17U);
  EXPECT_EQ(read->extents[1].file_offset, 18U);
  EXPECT_EQ(read->extents[1].bytes, 19U);
  EXPECT_EQ(read->extents[1].at, 20U);
  EXPECT_EQ(read->extents[1].expected.identity, sample().extents[1].expected.identity);
  EXPECT_EQ(read->extents[1].expected.payload_bytes, 22U);
  EXPECT_EQ(read->text, "why");
}

TEST(ProcessMessage, OfAnyOtherLengthIsRefused) {
  auto bytes = encode(sample());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_process_message(std::span(bytes).first(size))) << size;
  bytes.push_back(0);
  EXPECT_FALSE(decode_process_message(bytes));
}

TEST(ProcessMessage, NumbersOutOfBoundsAreRefused) {
  // verb, code, copies, bytes of the text, signals, extents
  for (size_t at : {size_t{0}, size_t{4}, size_t{40}, size_t{44}, size_t{136}, size_t{144}}) {
    auto bytes = encode(sample());
    bytes[at + 3] = 0xff;
    EXPECT_FALSE(decode_process_message(bytes)) << at;
  }
}

TEST(ProcessMessage, ALongTextIsCut) {
  process_message message;
  message.text.assign(2 * process_text_max, 'x');
  auto read = decode_process_message(encode(message));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text.size(), process_text_max);
}

} // namespace
} // namespace terrace::gpu
