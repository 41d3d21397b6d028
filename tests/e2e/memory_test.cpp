// A host arena in which everything is leased or being written.
#include "workload.hpp"

#include <memory>

namespace terrace::e2e {
namespace memory_test {

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

TEST_F(FullMemory, EveryStoreIsServedInTurn) {
  held_.resize(host_objects - 2); // room for one of them at a time
  EXPECT_EQ(leased_objects(client_, host_objects - 2), host_objects - 2);
  tester others(daemon_.socket(), "others");
  std::vector<std::vector<digest>> chains;
  std::vector<client::ticket<client::store_result>> tickets;
  for (uint64_t i = 0; i < 8; ++i)
    chains.push_back(chain_of(500 + i, 2));
  for (const auto& chain : chains) {
    auto ticket = others->async().store(others.store_of(chain), patiently());
    ASSERT_TRUE(ticket);
    tickets.push_back(std::move(*ticket));
  }
  for (auto& ticket : tickets) {
    auto stored = ticket.wait(patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, 2U);
  }
}

// ---- memory that waiting helps to get ----

/// A daemon whose host memory is held by slow loads. They take turns, so that none of them ends for seconds.
class BusyMemory : public ::testing::Test {
 protected:
  static constexpr uint64_t loaders = 8;

  BusyMemory() {
    EXPECT_EQ(client_.store(filling_), host_objects);
    for (uint64_t i = 0; i < loaders; ++i)
      slow_.push_back(std::make_unique<slow_client>(daemon_.socket(), "slow", 4));
  }
  /// Holds this many of the objects that fill the memory.
  bool hold(uint64_t objects) {
    for (uint64_t i = 0; i < objects; ++i)
      for (auto& ticket : slow_[i % loaders]->load(filling_[i], 1))
        loads_.push_back(std::move(ticket));
    return leased_objects(client_, objects) == objects;
  }
  /// Cancels the last load, whose object may then leave.
  void end_one() {
    ASSERT_FALSE(loads_.empty());
    ASSERT_TRUE(loads_.back().cancel(patiently()));
    loads_.pop_back();
  }
  bool waiting(uint64_t requests) {
    return eventually([&] { return client_.tier("host").waiting_requests == requests; });
  }
  client::ticket<client::store_result> submit(tester& by, const std::vector<digest>& chain,
                                              client::deadline until = patiently()) {
    auto ticket = by->async().store(by.store_of(chain), until);
    EXPECT_TRUE(ticket) << ticket.error().text;
    return std::move(*ticket);
  }

  daemon_under_test daemon_;
  tester client_{daemon_.socket(), "client"};
  std::vector<digest> filling_ = chain_of(1000, host_objects);
  std::vector<std::unique_ptr<slow_client>> slow_;
  std::vector<client::ticket<client::load_result>> loads_;
  std::vector<digest> wanted_ = chain_of(1, 1);
};

TEST_F(BusyMemory, StoreWithADeadlineIsToldWhatHoldsTheMemory) {
  ASSERT_TRUE(hold(host_objects));
  auto ticket = submit(client_, wanted_, client::within(std::chrono::milliseconds(500)));
  auto stored = ticket.wait(patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space);
  EXPECT_NE(stored.error().text.find("leases and transfers hold"), std::string::npos) << stored.error().text;
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 0U);
}

TEST_F(BusyMemory, CancelledRequestGivesWayToTheOneBehindIt) {
  ASSERT_TRUE(hold(host_objects));
  auto large = chain_of(2, 3);
  auto first = submit(client_, large);
  ASSERT_TRUE(waiting(1));
  tester second(daemon_.socket(), "second");
  auto behind = submit(second, wanted_);
  ASSERT_TRUE(waiting(2));
  ASSERT_TRUE(first.cancel(patiently()));
  ASSERT_TRUE(waiting(1));
  end_one(); // makes room for the second
  auto stored = behind.wait(patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
}

TEST_F(BusyMemory, ASmallStorePassesHoweverManyLargeOnesAnotherClientHas) {
  ASSERT_TRUE(hold(host_objects));
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
  auto stored = small.wait(patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
  // Those loads continue as well, through the memory that became free; the machine's speed decides how many
  // have ended by now.
  EXPECT_NE(client_.tier("host").waiting_requests, 0U) << "it waited for large ones";
}

} // namespace memory_test
} // namespace terrace::e2e
