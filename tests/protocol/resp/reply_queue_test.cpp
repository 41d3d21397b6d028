// Replies are sent in their order, byte by byte if necessary, and keep what they refer to until then.

#include "protocol/resp/reply.hpp"

#include <gtest/gtest.h>

namespace terrace::resp {
namespace {

std::string bytes_of(const reply_queue::part& part, size_t most) {
  std::string text;
  for (const iovec& area : part.areas)
    text.append(static_cast<const char*>(area.iov_base), area.iov_len);
  return text.substr(0, most);
}

TEST(ReplyQueue, SendsTextsAndValuesInOrder) {
  auto value = std::make_shared<std::string>(1000, 'v');
  for (size_t step : {1u, 3u, 999u, 100'000u}) {
    reply_queue line;
    line.text() += "$1000\r\n";
    line.add_value(std::as_bytes(std::span(*value)), value);
    line.text() += "\r\n+OK\r\n";
    std::string sent;
    bool more = true;
    while (!line.empty()) {
      auto part = line.begin();
      if (std::exchange(more, false))
        line.text() += ":1\r\n"; // while a part is being sent
      auto taken = bytes_of(part, step);
      sent += taken;
      line.sent(taken.size());
    }
    EXPECT_EQ(sent, "$1000\r\n" + *value + "\r\n+OK\r\n:1\r\n");
    EXPECT_EQ(value.use_count(), 1);
  }
}

TEST(ReplyQueue, HasRoomForABoundedNumberOfValues) {
  auto value = std::make_shared<std::string>("value");
  reply_queue line;
  for (size_t i = 0; i < reply_queue::values_max; ++i) {
    EXPECT_TRUE(line.has_room());
    line.add_value(std::as_bytes(std::span(*value)), value);
  }
  EXPECT_FALSE(line.has_room());
  auto part = line.begin();
  line.sent(part.bytes);
  EXPECT_TRUE(line.has_room() && line.empty());
  line.text().append(reply_queue::bytes_max, 'x');
  EXPECT_FALSE(line.has_room());
}

TEST(ReplyQueue, APartThatIsSentKeepsItsBytes) {
  auto value = std::make_shared<std::string>("value");
  reply_queue::part part;
  {
    reply_queue line;
    line.add_value(std::as_bytes(std::span(*value)), value);
    part = line.begin();
  }
  EXPECT_EQ(value.use_count(), 2);
  EXPECT_EQ(bytes_of(part, 99), "value");
}

TEST(Reply, AnErrorIsOneLine) {
  std::string text;
  append_error(text, "ERR", "a\r\nb");
  EXPECT_EQ(text, "-ERR a  b\r\n");
  text.clear();
  append_failure(text, {errc::no_space, "full"});
  append_failure(text, {errc::deadline, "late"});
  append_failure(text, {errc::internal, "bug"});
  EXPECT_EQ(text, "-OOM full\r\n-BUSY late\r\n-ERR internal: bug\r\n");
}

TEST(Reply, NullsAndMapsAreThoseOfTheVersion) {
  std::string text;
  append_null(text, version::resp2);
  append_null(text, version::resp3);
  append_map_head(text, version::resp2, 2);
  append_map_head(text, version::resp3, 2);
  EXPECT_EQ(text, "$-1\r\n_\r\n*4\r\n%2\r\n");
}

} // namespace
} // namespace terrace::resp
