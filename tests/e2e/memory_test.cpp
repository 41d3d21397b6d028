// A host arena in which everything is leased, or being written.
#include "workload.hpp"

namespace terrace::e2e {
namespace {

constexpr uint64_t host_objects = 31;

/// A daemon whose host memory is leased to the last object, and a client that wants some.
class FullMemory : public ::testing::Test {
 protected:
  client::store_request wish() {
    fill_content(wanted_[0], client_.piece(0));
    return client_.store_of(wanted_);
  }

  daemon_under_test daemon_;
  tester holder_{daemon_.socket(), "holder"};
  tester client_{daemon_.socket(), "client"};
  std::vector<client::lease> held_ = occupy(holder_, 100, host_objects);
  std::vector<digest> wanted_ = chain_of(1, 1);
};

TEST_F(FullMemory, StoreIsToldAtOnceWhatHoldsTheMemory) {
  auto stored = client_->store(wish(), patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space);
  EXPECT_NE(stored.error().text.find("only the end of leases can make"), std::string::npos)
      << stored.error().text;
  EXPECT_NE(stored.error().text.find("31 objects"), std::string::npos) << stored.error().text;
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 0U);
}

TEST_F(FullMemory, StoreSucceedsOnceALeaseIsReleased) {
  held_.pop_back();
  EXPECT_EQ(leased_objects(client_, host_objects - 1), host_objects - 1);
  auto stored = client_->store(wish(), patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
  EXPECT_EQ(client_.load_and_check(wanted_), 1U);
}

TEST_F(FullMemory, EveryStoreIsServedInTurn) {
  held_.resize(host_objects - 2); // room for one of them at a time
  EXPECT_EQ(leased_objects(client_, host_objects - 2), host_objects - 2);
  tester others(daemon_.socket(), "others");
  std::vector<std::vector<digest>> chains;
  std::vector<client::ticket<client::store_result>> tickets;
  for (uint64_t i = 0; i < 8; ++i)
    chains.push_back(chain_of(500 + i, 2));
  for (const auto& chain : chains) {
    auto ticket = others->submit_store(others.store_of(chain), patiently());
    ASSERT_TRUE(ticket);
    tickets.push_back(std::move(*ticket));
  }
  for (auto& ticket : tickets) {
    auto stored = others->wait(ticket, patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, 2U);
  }
}

TEST_F(FullMemory, RequestThatCanNeverFitIsRefusedAtOnce) {
  auto spec = test_space();
  spec.pools[0].object_bytes = 64 * mebibyte;
  tester large(daemon_.socket(), "large", 64 * mebibyte, spec);
  client::run run{.offset = 0, .bytes = 64 * mebibyte};
  auto request = large.store_of(wanted_);
  request.runs = {&run, 1};
  auto stored = large->store(request, patiently());
  ASSERT_FALSE(stored);
  EXPECT_TRUE(stored.error().code == errc::bad_request || stored.error().code == errc::no_space);
}

// ---- memory that waiting helps to get ----

/// A daemon whose host memory stores in progress hold, to the last object.
class BusyMemory : public ::testing::Test {
 protected:
  static constexpr uint64_t physical_bytes = object_bytes + 4096;

  bool used(uint64_t objects) {
    return eventually([&] { return client_.tier("host").used_bytes == objects * physical_bytes; });
  }
  bool waiting(uint64_t requests) {
    return eventually([&] { return client_.tier("host").waiting_requests == requests; });
  }
  client::ticket<client::store_result> submit(tester& by, const std::vector<digest>& chain,
                                              client::deadline until = patiently()) {
    auto ticket = by->submit_store(by.store_of(chain), until);
    EXPECT_TRUE(ticket) << ticket.error().text;
    return std::move(*ticket);
  }
  /// Ends one of the slow stores, which gives one object back.
  void end_one() {
    ASSERT_FALSE(in_progress_.empty());
    ASSERT_TRUE(slow_->cancel(in_progress_.back(), patiently()));
    in_progress_.pop_back();
  }

  daemon_under_test daemon_;
  tester client_{daemon_.socket(), "client"};
  slow_client slow_{daemon_.socket(), "slow"};
  std::vector<client::ticket<client::store_result>> in_progress_ = slow_.store(1000, host_objects);
  std::vector<digest> wanted_ = chain_of(1, 1);
};

TEST_F(BusyMemory, StoreWithADeadlineIsToldWhatHoldsTheMemory) {
  ASSERT_TRUE(used(host_objects));
  auto ticket = submit(client_, wanted_, client::within(std::chrono::milliseconds(100)));
  auto stored = client_->wait(ticket, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space);
  EXPECT_NE(stored.error().text.find("writes in progress"), std::string::npos) << stored.error().text;
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 0U);
}

TEST_F(BusyMemory, WaitingStoreCanBeCancelled) {
  ASSERT_TRUE(used(host_objects));
  auto ticket = submit(client_, wanted_);
  ASSERT_TRUE(waiting(1));
  auto known = client_->cancel(ticket, patiently());
  ASSERT_TRUE(known);
  EXPECT_TRUE(*known);
  auto stored = client_->wait(ticket, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::cancelled);
  end_one();
  EXPECT_EQ(client_.store(wanted_), 1U);
}

TEST_F(BusyMemory, CancelledRequestGivesWayToTheOneBehindIt) {
  ASSERT_TRUE(used(host_objects));
  auto large = chain_of(2, 3);
  auto first = submit(client_, large);
  ASSERT_TRUE(waiting(1));
  tester second(daemon_.socket(), "second");
  auto behind = submit(second, wanted_);
  ASSERT_TRUE(waiting(2));
  ASSERT_TRUE(client_->cancel(first, patiently()));
  ASSERT_TRUE(waiting(1));
  end_one(); // enough for the second
  auto stored = second->wait(behind, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
}

TEST_F(BusyMemory, WhatACancelledStoreGivesBackIsEnoughTogetherWithWhatMayLeave) {
  ASSERT_TRUE(used(host_objects));
  end_one();
  EXPECT_EQ(client_.store(wanted_), 1U); // may leave
  auto two = chain_of(2, 2);
  auto ticket = submit(client_, two);
  ASSERT_TRUE(waiting(1));
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 1U) << "one object would not be enough";
  end_one();
  auto stored = client_->wait(ticket, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 2U);
}

TEST_F(BusyMemory, ASmallStorePassesHoweverManyLargeOnesAnotherClientHas) {
  ASSERT_TRUE(used(host_objects));
  constexpr uint64_t count = 40;
  std::vector<std::vector<digest>> large;
  std::vector<client::ticket<client::store_result>> tickets;
  for (uint64_t i = 0; i < count; ++i) {
    large.push_back(chain_of(100 + i, 3));
    tickets.push_back(submit(client_, large.back()));
  }
  ASSERT_TRUE(waiting(count));
  tester other(daemon_.socket(), "other");
  auto small = submit(other, wanted_);
  ASSERT_TRUE(waiting(count + 1));
  end_one();
  auto stored = other->wait(small, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
  EXPECT_EQ(client_.tier("host").waiting_requests, count);
}

} // namespace
} // namespace terrace::e2e
