// What was under way over a connection that is lost is asked for once more.
#include "played_store.hpp"

namespace terrace::actors {
namespace lost_connections_test {

class LostConnections : public played_store_test::PlayedObjects {
 protected:
  LostConnections() {
    for (size_t i = 0; i < memory_.size(); ++i)
      memory_[i] = static_cast<std::byte>(i * 31 + i / 251);
    EXPECT_EQ((*write())->outcomes, all(move_outcome::done));
    written_ = memory_;
  }
  /// Time enough to connect again.
  void connect_again() {
    advance(remote_store::before_another_try);
    go_on();
  }
  void forget_memory() { std::ranges::fill(memory_, std::byte{0}); }
  bool has_what_was_written() const {
    for (size_t i = 0; i < count; ++i) {
      const auto begin = static_cast<ptrdiff_t>(i * (object_header_bytes + bytes) + object_header_bytes);
      if (!std::equal(memory_.begin() + begin, memory_.begin() + begin + bytes, written_.begin() + begin))
        return false;
    }
    return true;
  }

  std::vector<std::byte> written_;
};

TEST_F(LostConnections, AReadIsAskedForOnceMore) {
  forget_memory();
  server_.cut("GET");
  auto told = read();
  EXPECT_FALSE(*told);
  EXPECT_FALSE(service_->reads());
  connect_again();
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::done));
  EXPECT_TRUE(has_what_was_written());
  EXPECT_GT(counts_->retries(false), 0U);
  EXPECT_LT(counts_->retries(false), count) << "what had not been sent is no retry";
  EXPECT_EQ(counts_->retries(true), 0U);
  EXPECT_TRUE(service_->reads());
}

TEST_F(LostConnections, AWriteIsRepeated) {
  EXPECT_TRUE(*remove(objects_));
  ASSERT_EQ(objects_in_store(), 0U);
  server_.cut("SET");
  auto told = write();
  EXPECT_FALSE(*told);
  connect_again();
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::done));
  EXPECT_EQ(objects_in_store(), count);
  EXPECT_GT(counts_->retries(true), 0U);
  forget_memory();
  EXPECT_EQ((*read())->outcomes, all(move_outcome::done));
  EXPECT_TRUE(has_what_was_written());
}

TEST_F(LostConnections, ARemovalIsRepeated) {
  server_.cut("UNLINK");
  auto removed = remove(objects_);
  EXPECT_FALSE(*removed);
  connect_again();
  ASSERT_TRUE(*removed);
  EXPECT_EQ((*removed)->failure.code, errc::ok) << (*removed)->failure.text;
  EXPECT_EQ(objects_in_store(), 0U);
}

TEST_F(LostConnections, ButNotTwice) {
  server_.cut("GET", 2);
  auto told = read();
  connect_again();
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::away));
  const auto retries = counts_->retries(false);
  advance(std::chrono::seconds(1));
  go_on();
  ASSERT_TRUE(service_->reads());
  EXPECT_EQ((*read())->outcomes, all(move_outcome::done));
  EXPECT_EQ(counts_->retries(false), retries);
}

TEST_F(LostConnections, WithoutAServerItIsAMissAtOnce) {
  server_.hold("GET");
  auto told = read();
  server_.close();
  go_on();
  EXPECT_FALSE(*told);
  connect_again();
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::away));
  EXPECT_EQ(counts_->retries(false), 0U);
}

TEST_F(LostConnections, AServerThatDoesNotLetUsInIsNotWaitedFor) {
  server_.hold("HELLO");
  server_.cut("GET");
  auto told = read();
  connect_again();
  EXPECT_FALSE(*told);
  auto behind = read();
  ASSERT_TRUE(*behind) << "it is not in service";
  EXPECT_EQ((*behind)->outcomes, all(move_outcome::away));
  advance(remote_store::patience_min);
  go_on();
  ASSERT_TRUE(*told);
  EXPECT_EQ((*told)->outcomes, all(move_outcome::away));
  server_.release();
  go_on();
  EXPECT_EQ((*read())->outcomes, all(move_outcome::done));
}

TEST_F(LostConnections, WhatNobodyWaitsForIsNotAskedForAgain) {
  server_.hold("HELLO");
  server_.cut("GET");
  auto told = read(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  const size_t before = server_.served["GET"];
  while (!*told) { // the store looks at the clock of this machine
    advance(std::chrono::milliseconds(1));
    go_on();
  }
  for (move_outcome each : (*told)->outcomes)
    EXPECT_TRUE(each == move_outcome::late || each == move_outcome::away);
  server_.release();
  connect_again();
  EXPECT_EQ(server_.served["GET"] - before, 2U) << "the tokens";
}

TEST_F(LostConnections, AServerThatSaysNothingIsNotAskedAgain) {
  server_.hold("GET");
  auto told = read();
  while (!*told) {
    advance(std::chrono::milliseconds(20));
    go_on();
  }
  EXPECT_EQ((*told)->outcomes, all(move_outcome::away));
  EXPECT_EQ(counts_->retries(false), 0U);
}

} // namespace lost_connections_test
} // namespace terrace::actors
