#include "frames.hpp"
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

TEST(Frame, HeaderHasTheDocumentedBytes) {
  auto bytes = write_header({0x01020304 & ~7U, kind::lookup, 3, 0x1122334455667788});
  std::array<uint8_t, 16> expected{0x00, 0x03, 0x02, 0x01, 0x06, 0x00, 0x03, 0x00,
                                   0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  EXPECT_EQ(bytes, expected);
}

TEST(Frame, HelloHasTheDocumentedBytes) {
  // The example of docs/protocol.md. A change here breaks every client.
  bytes expected{
      // clang-format off
      0x38, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // header
      0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x04, 0x00, 0x08, 0x00, // root, vtable
      0x08, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, // table, string
      0x64, 0x65, 0x6d, 0x6f, 0x00, 0x00, 0x00, 0x00,                                                 // "demo"
      // clang-format on
  };
  EXPECT_EQ(hello_frame("demo"), expected);
}

TEST(Frame, BodyStartsBehindTheHeaderAndTheLengthIsAMultipleOfEight) {
  for (size_t size = 1; size < 40; ++size) {
    auto frame = hello_frame(std::string(size, 'x'));
    auto header = read_header(frame.data());
    EXPECT_EQ(header.length, frame.size());
    EXPECT_EQ(header.length % frame_alignment, 0U);
    auto table = parse<wire::Hello>(std::span<const uint8_t>(frame).subspan(header_bytes));
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ((*table)->client_name()->size(), size);
  }
}

TEST(Frame, BuilderIsReusable) {
  frame_builder builder;
  std::vector<uint32_t> tokens(100'000, 7);
  for (size_t count : {100'000UL, 10UL, 50'000UL}) {
    auto& body = builder.start();
    auto prefix = wire::CreatePrefix(body, body.CreateVector(tokens.data(), count));
    builder.finish(kind::lookup, count, wire::CreateLookup(body, 1, prefix));
    auto header = read_header(builder.bytes().data());
    EXPECT_EQ(header.request_id, count);
    auto table = parse<wire::Lookup>(builder.bytes().subspan(header_bytes));
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ((*table)->prefix()->tokens()->size(), count);
  }
}

TEST(Frame, TooLongABodyGivesNoBytes) {
  frame_builder builder;
  std::vector<uint8_t> digests(frame_bytes_max);
  auto& body = builder.start();
  auto prefix = wire::CreatePrefix(body, 0, 0, 0, body.CreateVector(digests));
  builder.finish(kind::lookup, 1, wire::CreateLookup(body, 1, prefix));
  EXPECT_TRUE(builder.bytes().empty());
}

TEST(Frame, EmptyVectorsOfStructsAreAlignedToo) {
  for (size_t texts = 0; texts < 4; ++texts) {
    frame_builder builder;
    auto& body = builder.start();
    for (size_t i = 0; i < texts; ++i)
      body.CreateString("shift");
    auto places = create_structs(body, std::vector<wire::Location>());
    builder.finish(answer_to(kind::read_lease), 1, wire::CreateReadLeaseAnswer(body, places));
    std::vector<uint64_t> copy(builder.bytes().size() / 8); // aligned
    std::memcpy(copy.data(), builder.bytes().data(), builder.bytes().size());
    const auto* table = flatbuffers::GetRoot<wire::ReadLeaseAnswer>(
        reinterpret_cast<const uint8_t*>(copy.data()) + header_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(table->locations()->Data()) % 8, 0U) << texts;
  }
}

TEST(Kinds, EveryRequestHasAnAnswerAndAName) {
  for (uint16_t number = 1; number <= last_request; ++number) {
    auto request = static_cast<kind>(number);
    EXPECT_TRUE(is_request(request));
    EXPECT_FALSE(is_answer(request));
    EXPECT_TRUE(is_answer(answer_to(request)));
    EXPECT_EQ(to_string(answer_to(request)), "answer to " + std::string(to_string(request)));
  }
  EXPECT_TRUE(is_answer(kind::error));
  EXPECT_FALSE(is_answer(static_cast<kind>(0x8000)));
  EXPECT_FALSE(is_answer(static_cast<kind>(0x8000 | (last_request + 1))));
  EXPECT_FALSE(is_request(static_cast<kind>(0)));
}
