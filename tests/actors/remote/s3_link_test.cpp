// The link to a bucket against a store of ours that fails as it is told, with a poll loop in place of the ring.
#include "actors/remote/store_link.hpp"
#include "poll_ring.hpp"
#include "remote/hedging.hpp"
#include "tests/support/s3_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <tuple>

namespace terrace::actors {
namespace {

using enum remote::command_result;
using remote::finished_command;
using std::chrono::steady_clock;
using test::s3_process;

class S3Link : public ::testing::Test {
 protected:
  static constexpr uint64_t first_tag = 1'000;

  void SetUp() override { make(std::chrono::seconds(60)); }
  ~S3Link() override { end(); }

  void make(std::chrono::nanoseconds silence_max) {
    link_ = make_s3_link({.first_tag = first_tag,
                          .silence_max = silence_max,
                          .submit = [this](runtime::io_request request,
                                           uint64_t tag) { return ring_.submit(std::move(request), tag); },
                          .cancel = [this](runtime::operation_id id) { ring_.cancel(id); },
                          .ready = [this] { ++times_ready_; },
                          .finished = [this](const finished_command& told) { told_.push_back(told); },
                          .failed =
                              [this](const std::string& why) {
                                failure_ = why;
                                ++failures_;
                                link_->end();
                              },
                          .hedged = [this](bool won) { ++(won ? hedges_won_ : hedges_sent_); },
                          .turned = [this] { link_->pump(nullptr); }});
  }
  void turn() {
    const auto [tag, result] = ring_.next();
    link_->on_io_done(tag, result);
  }
  void connect(const std::string& password = s3_process::secret_key) {
    link_->connect(remote::parse_store_address("s3://" + store_.place()).value(),
                   {.login = {.user = s3_process::access_key, .password = password}});
    while (!link_->ready() && failure_.empty())
      turn();
  }
  /// The next command that finishes; none: the link has failed.
  std::optional<finished_command> next() {
    link_->pump(nullptr);
    while (told_.empty() && failure_.empty())
      turn();
    if (told_.empty())
      return std::nullopt;
    auto first = std::move(told_.front());
    told_.pop_front();
    return first;
  }
  remote::command_result result() {
    auto told = next();
    EXPECT_TRUE(told) << failure_;
    return told ? told->result : refused;
  }
  void end() {
    link_->end();
    while (!link_->idle())
      turn();
    link_->forget();
  }
  remote::store_commands& server() { return *link_->server(); }
  void write(const std::string& key, const std::string& text) {
    server().write_text(0, key, text);
    ASSERT_EQ(result(), done);
  }

  s3_process store_;
  test::poll_ring ring_;
  std::unique_ptr<store_link> link_;
  std::deque<finished_command> told_;
  std::string failure_;
  int times_ready_ = 0, failures_ = 0, hedges_sent_ = 0, hedges_won_ = 0;
};

std::span<std::byte> bytes_in(std::string& text) { return std::as_writable_bytes(std::span(text)); }

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
  for (size_t bytes : {payload.size() - 1, payload.size() + 1}) {
    std::string wrong(bytes, '\0');
    server().read(9, key, bytes_in(other_header), bytes_in(wrong));
    EXPECT_EQ(result(), wrong_length) << bytes;
  }
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

TEST_F(S3Link, ARequestThatIsCutIsRefusedAndTheOthersGoOn) {
  connect();
  write("a", std::string(1'000, 'a'));
  store_.fail("cut", "GET", 1);
  server().read_text(0, "a");
  auto cut = next();
  ASSERT_TRUE(cut) << failure_;
  EXPECT_EQ(cut->result, refused);
  EXPECT_EQ(cut->why.code, errc::busy);
  server().read_text(0, "a");
  EXPECT_EQ(result(), done);
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
  EXPECT_EQ(refused_ones, 4);
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

// ---- requests that are sent a second time ----

class S3LinkHedges : public S3Link {
 protected:
  static constexpr size_t answers_min = remote::hedging::answers_min;

  void SetUp() override {
    S3Link::SetUp();
    connect();
    for (size_t i = 0; i < value_.size(); ++i)
      value_[i] = static_cast<char>(i * 31 + i / 251);
    server().write(1, "value", {}, bytes_in(value_), nullptr, std::chrono::seconds(0));
    ASSERT_EQ(result(), done);
    write("text", "text");
    begin_anew();
  }
  ~S3LinkHedges() override { store_.tell("release"); }

  /// Just enough is known and saved for one request to be sent a second time, and none was before, however slow this machine is.
  void begin_anew(std::chrono::nanoseconds silence_max = std::chrono::seconds(60)) {
    end();
    make(silence_max);
    connect();
    failure_.clear();
    hedges_sent_ = hedges_won_ = 0;
    read_texts(answers_min);
    ASSERT_EQ(hedges_sent_, 0);
  }
  void read_texts(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      server().read_text(0, "text");
      ASSERT_EQ(result(), done) << failure_;
    }
  }
  void ask_for_value() {
    read_.assign(value_.size(), '\0');
    server().read(7, "value", std::span(bytes_in(read_)).first(256), std::span(bytes_in(read_)).subspan(256));
    link_->pump(nullptr);
  }
  /// Waits for the store, which waits for requests, so the link goes on meanwhile.
  void await_store(const std::string& command) {
    runtime::io_request poll;
    poll.code = runtime::io_code::poll;
    poll.fd = store_.begin(command);
    poll.events = POLLIN;
    ring_.submit(std::move(poll), 0);
    for (auto [tag, result] = ring_.next(); tag != 0; std::tie(tag, result) = ring_.next())
      link_->on_io_done(tag, result);
    EXPECT_EQ(store_.answer(), "ok");
  }
  /// What the store has sent before arrives before this has ended.
  void round_trip() {
    server().exists(0, "value");
    EXPECT_EQ(result(), done) << failure_;
  }
  void await_hedge() {
    while (hedges_sent_ == 0 && failure_.empty())
      turn();
  }
  void await_failure() {
    link_->pump(nullptr);
    while (failure_.empty() && told_.empty())
      turn();
    EXPECT_EQ(failure_, "it does not answer");
  }
  int asked(const std::string& method) { return std::stoi(store_.tell("asked " + method)); }

  std::string value_ = std::string(3 << 20, '\0'), read_;
};

TEST_F(S3LinkHedges, AReadThatHangsIsServedByTheSecondRequest) {
  store_.tell("hold GET 1");
  ask_for_value();
  EXPECT_EQ(result(), done) << failure_;
  EXPECT_TRUE(read_ == value_);
  EXPECT_EQ(hedges_sent_, 1);
  EXPECT_EQ(hedges_won_, 1);
  EXPECT_FALSE(server().waits());
  store_.tell("release");
  read_texts(1);
  EXPECT_TRUE(told_.empty()) << "the first request has no answer any more";
  EXPECT_TRUE(read_ == value_);
}

TEST_F(S3LinkHedges, AQuestionThatHangsIsServedByTheSecondRequest) {
  for (size_t i = 0; i < answers_min; ++i) {
    server().exists(0, "value");
    ASSERT_EQ(result(), done);
  }
  store_.tell("hold HEAD 1");
  server().exists(0, "nothing");
  server().exists(0, "value");
  EXPECT_EQ(result(), absent) << "in their order";
  EXPECT_EQ(result(), done);
  EXPECT_GE(hedges_won_, 1);
}

TEST_F(S3LinkHedges, TheFirstRequestMayBeAnsweredFirst) {
  store_.tell("hold GET 2");
  ask_for_value();
  await_hedge();
  await_store("held 2");
  store_.tell("release 1");
  EXPECT_EQ(result(), done) << failure_;
  EXPECT_TRUE(read_ == value_);
  EXPECT_EQ(hedges_sent_, 1);
  EXPECT_EQ(hedges_won_, 0);
}

TEST_F(S3LinkHedges, TwoAnswersAtATimeAreNotMixed) {
  std::string inverted = value_;
  for (char& each : inverted)
    each = static_cast<char>(~each);
  store_.tell("hold GET 2");
  store_.fail("half", "GET", 1);
  ask_for_value();
  await_hedge();
  await_store("held 2");
  store_.tell("release 1");
  await_store("failed GET");
  await_store("held 2"); // now the second request, and the first one in the middle of its answer
  store_.fail("inverted", "GET", 1);
  store_.tell("release 1");
  await_store("failed GET");
  round_trip();
  store_.tell("release");
  EXPECT_EQ(result(), done) << failure_;
  EXPECT_TRUE(read_ == value_ || read_ == inverted);
}

TEST_F(S3LinkHedges, ARequestThatFailsLeavesTheOtherOne) {
  for (const char* fault : {"reset", "cut", "status-500-InternalError"})
    for (const bool first_fails : {true, false}) {
      SCOPED_TRACE(std::string(fault) + (first_fails ? " first" : " second"));
      begin_anew();
      store_.tell(first_fails ? "hold GET 2" : "hold GET 1");
      store_.fail(fault, "GET", 1);
      ask_for_value();
      await_hedge();
      await_store(first_fails ? "held 2" : "held 1");
      if (first_fails)
        store_.tell("release 1");
      await_store("failed GET");
      round_trip();
      store_.tell("release");
      EXPECT_EQ(result(), done) << failure_;
      EXPECT_TRUE(read_ == value_);
    }
}

TEST_F(S3LinkHedges, AReadFailsIfBothRequestsDo) {
  store_.tell("hold GET 1");
  store_.fail("status-500-InternalError", "GET", 2);
  ask_for_value();
  await_hedge();
  store_.tell("release");
  EXPECT_EQ(result(), refused);
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(hedges_won_, 0);
  read_texts(1);
}

TEST_F(S3LinkHedges, AStoreThatIsSlowAsAWholeIsAskedForOneInTwentyMore) {
  begin_anew(std::chrono::seconds(1));
  const int before = asked("GET");
  store_.tell("hold GET 1000");
  for (int i = 0; i < 15; ++i)
    server().read_text(0, "text");
  await_failure();
  EXPECT_EQ(hedges_sent_, 1) << "of 35 requests";
  EXPECT_LE(asked("GET") - before, 16);
}

TEST_F(S3LinkHedges, WritesAreNeverSentTwice) {
  begin_anew(std::chrono::milliseconds(500));
  for (size_t i = 0; i < answers_min; ++i)
    write("other", "text");
  const int before = asked("PUT");
  store_.tell("hold PUT 1");
  server().write_text(0, "other", "text");
  await_failure();
  EXPECT_EQ(asked("PUT") - before, 1);
  EXPECT_EQ(hedges_sent_, 0);
}

TEST_F(S3LinkHedges, AStoreThatAsksForFewerRequestsIsNotAskedTwice) {
  begin_anew(std::chrono::milliseconds(500));
  store_.fail("status-503-SlowDown", "GET", 1);
  server().read_text(0, "text");
  EXPECT_EQ(result(), refused);
  store_.tell("hold GET 1");
  ask_for_value();
  await_failure();
  EXPECT_EQ(hedges_sent_, 0);
}

TEST_F(S3LinkHedges, RequestsThatAreCancelledKeepNothing) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  for (const std::string released : {"release", "release 1"}) {
    begin_anew();
    const auto before = descriptors();
    store_.tell("hold GET 2");
    ask_for_value();
    await_hedge();
    await_store("held 2");
    store_.tell(released);
    EXPECT_EQ(result(), done) << failure_;
    read_texts(1); // the ring lets go before that is answered
    EXPECT_LE(descriptors(), before);
    store_.tell("release");
  }
}

TEST_F(S3LinkHedges, MayEndWhileBothRequestsAreUnderWay) {
  store_.tell("hold GET 2");
  ask_for_value();
  await_hedge();
  end();
  EXPECT_TRUE(ring_.empty());
  EXPECT_TRUE(told_.empty());
  store_.tell("release");
  const std::string before = read_;
  connect();
  read_texts(1);
  EXPECT_TRUE(read_ == before) << "nothing arrives in the memory of what has ended";
}

} // namespace
} // namespace terrace::actors
