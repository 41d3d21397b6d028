// The requests of one command: a question or a read that is late is sent a second time, the first answer counts, and nothing of the other
// one does.
#include "link_fixture.hpp"
#include "remote/hedging.hpp"

#include <poll.h>

#include <filesystem>
#include <string>
#include <tuple>

namespace terrace::actors {
namespace {

using enum remote::command_result;

class S3Attempts : public test::s3_link_fixture {
 protected:
  static constexpr size_t answers_min = remote::hedging::answers_min;

  void SetUp() override {
    s3_link_fixture::SetUp();
    connect();
    for (size_t i = 0; i < value_.size(); ++i)
      value_[i] = static_cast<char>(i * 31 + i / 251);
    server().write(1, "value", {}, bytes_in(value_), nullptr, std::chrono::seconds(0));
    ASSERT_EQ(result(), done);
    write("text", "text");
    begin_anew();
  }
  ~S3Attempts() override { store_.tell("release"); }

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
  /// The store holds the second request, and the first one in the middle of its answer. Releases are in this order.
  void begin_half_of_value() {
    store_.tell("hold GET 2");
    store_.fail("half", "GET", 1);
    ask_for_value();
    await_hedge();
    await_store("held 2");
    store_.tell("release 1");
    await_store("failed GET");
    await_store("held 2");
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

TEST_F(S3Attempts, AReadThatHangsIsServedByTheSecondRequest) {
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

TEST_F(S3Attempts, AQuestionThatHangsIsServedByTheSecondRequest) {
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

TEST_F(S3Attempts, TheFirstRequestMayBeAnsweredFirst) {
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

TEST_F(S3Attempts, TwoAnswersAtATimeAreNotMixed) {
  std::string inverted = value_;
  for (char& each : inverted)
    each = static_cast<char>(~each);
  begin_half_of_value();
  store_.fail("inverted", "GET", 1);
  store_.tell("release 1");
  await_store("failed GET");
  round_trip();
  store_.tell("release");
  EXPECT_EQ(result(), done) << failure_;
  EXPECT_TRUE(read_ == value_ || read_ == inverted);
}

TEST_F(S3Attempts, AnAnswerThatHasToWaitIsTakenIfTheOtherIsCut) {
  begin_half_of_value();
  store_.tell("release 1");
  round_trip();
  store_.fail("cut", "GET", 1);
  store_.tell("release");
  EXPECT_EQ(result(), done) << failure_;
  EXPECT_TRUE(read_ == value_);
  read_texts(1);
}

TEST_F(S3Attempts, ARequestThatFailsLeavesTheOtherOne) {
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

TEST_F(S3Attempts, AReadFailsIfBothRequestsDo) {
  store_.tell("hold GET 1");
  store_.fail("status-500-InternalError-3600", "GET", 2);
  ask_for_value();
  await_hedge();
  store_.tell("release");
  EXPECT_EQ(result(), refused);
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(hedges_won_, 0);
  read_texts(1);
}

TEST_F(S3Attempts, AStoreThatIsSlowAsAWholeIsAskedForOneInTwentyMore) {
  begin_anew(std::chrono::seconds(1));
  const int before = asked("GET");
  store_.tell("hold GET 1000");
  for (int i = 0; i < 15; ++i)
    server().read_text(0, "text");
  await_failure();
  EXPECT_EQ(hedges_sent_, 1) << "of 35 requests";
  EXPECT_LE(asked("GET") - before, 16);
}

TEST_F(S3Attempts, WritesAreNeverSentTwice) {
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

TEST_F(S3Attempts, AStoreThatAsksForFewerRequestsIsNotAskedTwice) {
  begin_anew(std::chrono::milliseconds(500));
  store_.fail("status-503-SlowDown", "GET", 1);
  server().read_text(0, "text");
  EXPECT_EQ(result(), done);
  store_.tell("hold GET 1");
  ask_for_value();
  await_failure();
  EXPECT_EQ(hedges_sent_, 0);
}

TEST_F(S3Attempts, RequestsThatAreCancelledKeepNothing) {
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

TEST_F(S3Attempts, MayEndWhileBothRequestsAreUnderWay) {
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
