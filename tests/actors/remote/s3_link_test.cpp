// The link to a bucket against a store of ours that fails as it is told, with a poll loop in place of the ring.
#include "link_fixture.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {
unsigned calls_for_quick_acknowledgements = 0;
}

/// Counts the calls of this program, the link's among them.
extern "C" int setsockopt(int socket, int level, int option, const void* value, socklen_t bytes) noexcept {
  if (level == IPPROTO_TCP && option == TCP_QUICKACK)
    ++calls_for_quick_acknowledgements;
  return static_cast<int>(::syscall(SYS_setsockopt, socket, level, option, value, bytes));
}

namespace terrace::actors {
namespace {

using enum remote::command_result;

using S3Link = test::s3_link_fixture;

TEST_F(S3Link, IsReadyOnceTheStoreLetsUsIn) {
  EXPECT_FALSE(link_->reached());
  connect();
  EXPECT_TRUE(link_->ready() && link_->reached() && link_->secured() && !link_->refused()) << failure_;
  EXPECT_EQ(times_ready_, 1);
  EXPECT_EQ(server().server_name(), "TestStore");
  EXPECT_EQ(server().server_version(), "1.0");
  EXPECT_GT(link_->round_trip().count(), 0);
}

TEST_F(S3Link, MovesValuesIntoTheMemoryForThem) {
  connect();
  const std::string key = "terrace/t1/space/epoch/0.0/{abcdef}";
  std::string header(256, 'h'), payload(3 << 20, '\0');
  for (size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<char>(i * 31 + i / 251);
  server().write(7, key, bytes_in(header), bytes_in(payload), nullptr, std::chrono::seconds(0));
  auto written = next();
  ASSERT_TRUE(written) << failure_;
  EXPECT_EQ(written->tag, 7U);
  EXPECT_EQ(written->result, done) << written->why.text;
  EXPECT_EQ(store_.tell("names"), "terrace/ab/t1/space/epoch/0.0/abcdef");
  std::string other_header(256, '\0'), other_payload(payload.size(), '\0');
  server().read(8, key, bytes_in(other_header), bytes_in(other_payload));
  EXPECT_EQ(result(), done);
  EXPECT_TRUE(other_header == header && other_payload == payload);
  std::string shorter(payload.size() - 1, '\0'), longer(payload.size() + 1, '\0');
  server().read(9, key, bytes_in(other_header), bytes_in(shorter));
  EXPECT_EQ(result(), wrong_length);
  server().read(10, key, bytes_in(other_header), bytes_in(longer));
  auto read = next();
  ASSERT_TRUE(read) << failure_;
  EXPECT_EQ(read->result, done);
  EXPECT_EQ(read->number, static_cast<int64_t>(payload.size()));
  EXPECT_TRUE(longer == payload + '\0');
  std::string large(header.size() + payload.size() + 1, '\0');
  server().read(11, key, bytes_in(large), bytes_in(longer));
  EXPECT_EQ(result(), wrong_length) << "it is shorter than a header";
  server().length(0, key);
  EXPECT_EQ(next()->number, static_cast<int64_t>(header.size() + payload.size()));
  EXPECT_FALSE(server().waits());
}

TEST_F(S3Link, KnowsWhatIsThere) {
  connect();
  write("a", "text");
  server().exists(0, "a");
  EXPECT_EQ(result(), done);
  server().exists(0, "b");
  EXPECT_EQ(result(), absent);
  server().read_text(0, "a");
  EXPECT_EQ(next()->text, "text");
  server().read_text(0, "b");
  EXPECT_EQ(result(), absent);
  server().length(0, "b");
  auto none = next();
  EXPECT_EQ(none->result, done);
  EXPECT_EQ(none->number, 0);
  server().erase(0, "a");
  EXPECT_EQ(result(), done);
  server().exists(0, "a");
  EXPECT_EQ(result(), absent);
  server().info(0, "memory");
  EXPECT_EQ(next()->why.code, errc::unsupported);
}

/// Some stores send the body of an answer once its head has been acknowledged, and Linux delays that by 40 ms. It goes back to
/// delays by itself, so each wait for bytes needs the call.
TEST_F(S3Link, AcknowledgesAnAnswerThatItWaitsForAtOnce) {
  connect();
  write("a", "text");
  for (int answer = 0; answer < 4; ++answer) {
    store_.tell("hold GET 1");
    const unsigned before = calls_for_quick_acknowledgements;
    server().read_text(0, "a");
    link_->pump(nullptr);
    while (!ring_.awaits_bytes())
      turn();
    EXPECT_GT(calls_for_quick_acknowledgements, before) << answer;
    store_.tell("release");
    EXPECT_EQ(result(), done);
  }
}

TEST_F(S3Link, ATextOfMoreThanATokenIsNotRead) {
  connect();
  write("large", std::string(remote::store_commands::text_bytes_max + 1, 'x'));
  server().read_text(0, "large");
  EXPECT_EQ(result(), wrong_length);
}

TEST_F(S3Link, WritesWhereNothingIs) {
  connect();
  server().write_text_if_absent(0, "token", "first");
  EXPECT_EQ(result(), done);
  server().write_text_if_absent(0, "token", "second");
  EXPECT_EQ(result(), absent);
  server().read_text(0, "token");
  EXPECT_EQ(next()->text, "first");
  store_.fail("status-501-NotImplemented", "PUT", 1);
  server().write_text_if_absent(0, "token", "third");
  EXPECT_EQ(result(), done) << "without the condition";
  store_.fail("status-501-NotImplemented", "PUT", 5);
  server().write_text_if_absent(0, "token", "fourth");
  EXPECT_EQ(result(), refused) << "it knows no writes at all";
  store_.fail("status-501-NotImplemented", "PUT", 0);
}

TEST_F(S3Link, TellsOfItsEndOnceIfManyRequestsFail) {
  connect();
  store_.kill();
  for (uint64_t i = 1; i <= 8; ++i)
    server().exists(i, "x");
  while (failure_.empty()) {
    link_->pump(nullptr);
    turn();
  }
  end();
  EXPECT_EQ(failures_, 1);
}

TEST_F(S3Link, ListsPagesOfKeys) {
  connect();
  std::vector<std::string> all{"t1/epoch/a", "t1/space/epoch/0.0/{ab12}", "t1/space/epoch/0.0/{ab12}/p1",
                               "x"};
  for (const std::string& key : all)
    write(key, "value");
  std::vector<std::string> found;
  std::string cursor = "0";
  do {
    server().scan(0, cursor, "t1/*", 3);
    auto page = next();
    ASSERT_TRUE(page);
    ASSERT_EQ(page->result, done) << page->why.text;
    EXPECT_LE(page->keys.size(), 3U);
    found.insert(found.end(), page->keys.begin(), page->keys.end());
    cursor = page->text;
  } while (cursor != "0");
  std::ranges::sort(found);
  std::ranges::sort(all);
  EXPECT_EQ(found, all);
}

TEST_F(S3Link, AnswersQuestionsInTheirOrder) {
  connect();
  for (int i = 0; i < 100; ++i)
    if (i % 3 == 0)
      write("key" + std::to_string(i), "x");
  for (int i = 0; i < 100; ++i)
    server().exists(0, "key" + std::to_string(i));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(result(), i % 3 == 0 ? done : absent) << i;
}

TEST_F(S3Link, ARequestThatIsCutIsSentOnceMore) {
  connect();
  const std::string value(100'000, 'a');
  write("a", value);
  std::string header(100, ' '), payload(value.size() - header.size(), ' ');
  store_.fail("cut", "GET", 1);
  server().read(7, "a", bytes_in(header), bytes_in(payload));
  EXPECT_EQ(result(), done);
  EXPECT_EQ(header + payload, value);
  EXPECT_EQ(reads_retried_, 1);
  // libcurl itself sends a request again whose connection was used before and ends without an answer.
  store_.fail("reset", "PUT", 2);
  write("b", value);
  store_.fail("reset", "DELETE", 2);
  server().erase(0, "a");
  EXPECT_EQ(result(), done);
  EXPECT_EQ(writes_retried_, 2);
  server().exists(0, "a");
  EXPECT_EQ(result(), absent);
}

TEST_F(S3Link, ARequestThatIsCutTwiceIsRefusedAndTheOthersGoOn) {
  connect();
  write("a", std::string(1'000, 'a'));
  store_.fail("cut", "GET", 2);
  server().read_text(0, "a");
  auto cut = next();
  ASSERT_TRUE(cut) << failure_;
  EXPECT_EQ(cut->result, refused);
  EXPECT_EQ(cut->why.code, errc::busy);
  EXPECT_EQ(reads_retried_, 1);
  server().read_text(0, "a");
  EXPECT_EQ(result(), done);
}

TEST_F(S3Link, WhatTheStoreRefusesForTheMomentIsSentUpToTwiceMore) {
  connect();
  write("a", "text");
  for (const char* how : {"status-503-SlowDown", "status-500-InternalError", "status-429-TooManyRequests"}) {
    SCOPED_TRACE(how);
    reads_retried_ = writes_retried_ = 0;
    store_.fail(how, "GET", 2);
    server().read_text(0, "a");
    EXPECT_EQ(next()->text, "text") << failure_;
    EXPECT_EQ(reads_retried_, 2);
    store_.fail(how, "PUT", 2);
    write("b", "text");
    EXPECT_EQ(writes_retried_, 2);
    store_.fail(how, "GET", 3);
    server().read_text(0, "a");
    auto told = next();
    ASSERT_TRUE(told) << failure_;
    EXPECT_EQ(told->result, refused);
    EXPECT_EQ(told->why.code, errc::busy);
    EXPECT_EQ(reads_retried_, 4);
    write("a", "text");
  }
}

TEST_F(S3Link, WhatTheStoreWantsLaterThanASecondFromNowIsNotSentAgain) {
  connect();
  write("a", "text");
  store_.fail("status-503-SlowDown-3600", "GET", 1);
  server().read_text(0, "a");
  EXPECT_EQ(result(), refused);
  EXPECT_EQ(reads_retried_, 0);
  server().read_text(0, "a");
  EXPECT_EQ(result(), done);
}

TEST_F(S3Link, WhatHasNoTimeLeftIsNotSentAgain) {
  make(std::chrono::milliseconds(900));
  connect();
  write("a", "text");
  store_.fail("status-503-SlowDown-1", "GET", 1);
  server().read_text(0, "a");
  EXPECT_EQ(result(), refused);
  EXPECT_EQ(reads_retried_, 0);
}

TEST_F(S3Link, FailsIfTheStoreKeepsAskingForFewerRequests) {
  connect();
  store_.fail("status-503-SlowDown-3600", "ANY", 100);
  int refused_ones = 0;
  for (int i = 0; i < 10 && failure_.empty(); ++i) {
    server().exists(0, "a");
    refused_ones += next() ? 1 : 0;
  }
  EXPECT_EQ(refused_ones, 4);
  EXPECT_NE(failure_.find("fewer requests"), std::string::npos) << failure_;
  EXPECT_FALSE(link_->refused());
}

TEST_F(S3Link, ALateRequestIsRefusedWhileOthersAreAnswered) {
  make(std::chrono::milliseconds(500));
  connect();
  write("a", "a");
  store_.fail("hang", "GET", 1);
  server().read_text(1, "a");
  link_->pump(nullptr);
  while (true) {
    server().exists(2, "a");
    auto told = next();
    ASSERT_TRUE(told) << failure_;
    EXPECT_EQ(told->result, told->tag == 1 ? refused : done);
    if (told->tag == 1)
      break;
  }
}

TEST_F(S3Link, FailsIfNothingIsAnswered) {
  make(std::chrono::milliseconds(200));
  connect();
  store_.fail("hang", "ANY", 100);
  server().read_text(0, "a");
  EXPECT_FALSE(next());
  EXPECT_EQ(failure_, "it does not answer");
  EXPECT_FALSE(link_->refused());
}

TEST_F(S3Link, FailsAfterSeveralFailuresInARow) {
  connect();
  store_.fail("reset", "ANY", 100);
  int refused_ones = 0;
  for (int i = 0; i < 10 && failure_.empty(); ++i) {
    server().exists(0, "a");
    refused_ones += next() ? 1 : 0;
  }
  EXPECT_EQ(refused_ones, 2) << "each of them was sent twice";
  EXPECT_NE(failure_.find("interrupted"), std::string::npos) << failure_;
}

TEST_F(S3Link, FailsIfTheKeysAreWrong) {
  connect("wrong");
  EXPECT_NE(failure_.find("first line of password_file"), std::string::npos) << failure_;
  EXPECT_TRUE(link_->refused());
  EXPECT_TRUE(link_->reached()) << "the store has answered";
}

TEST_F(S3Link, IsMadeAnewAfterItHasEnded) {
  connect();
  server().read_text(0, "a");
  link_->pump(nullptr);
  end();
  EXPECT_EQ(link_->server(), nullptr);
  EXPECT_TRUE(ring_.empty());
  EXPECT_TRUE(told_.empty()) << "what was asked has no answer";
  connect();
  write("a", "text");
}

TEST_F(S3Link, MayEndBeforeARequestIsSentOnceMore) {
  connect();
  write("a", std::string(1'000, 'a'));
  store_.fail("cut", "GET", 1);
  server().read_text(0, "a");
  link_->pump(nullptr);
  while (reads_retried_ == 0)
    turn();
  end();
  EXPECT_TRUE(told_.empty());
  connect();
  write("a", "text");
}

TEST_F(S3Link, MayEndInTheMiddleOfAnswers) {
  connect();
  store_.fail("hang", "GET", 8);
  for (int i = 0; i < 40; ++i)
    server().read_text(0, "a");
  link_->pump(nullptr);
  link_.reset(); // with what the ring still polls
  make(std::chrono::seconds(60));
  store_.fail("hang", "GET", 0);
  while (!ring_.empty()) {
    const auto [tag, result] = ring_.next();
    link_->on_io_done(tag, result); // that of another link goes to nobody
  }
  connect();
  write("a", "text");
}

} // namespace
} // namespace terrace::actors
