// A host arena in which everything is leased.
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

TEST_F(FullMemory, StoreWithADeadlineIsToldWhatHoldsTheMemory) {
  auto request = wish();
  auto ticket = client_->submit_store(request, client::within(std::chrono::milliseconds(50)));
  ASSERT_TRUE(ticket);
  auto stored = client_->wait(*ticket, patiently());
  ASSERT_FALSE(stored);
  EXPECT_TRUE(stored.error().code == errc::no_space || stored.error().code == errc::deadline);
  EXPECT_NE(stored.error().text.find("leases"), std::string::npos) << stored.error().text;
  EXPECT_NE(stored.error().text.find("31 objects"), std::string::npos) << stored.error().text;
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 0U);
}

TEST_F(FullMemory, StoreCompletesAsSoonAsALeaseIsReleased) {
  auto ticket = client_->submit_store(wish(), patiently());
  ASSERT_TRUE(ticket);
  held_.pop_back();
  auto stored = client_->wait(*ticket, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
  EXPECT_EQ(client_.load_and_check(wanted_), 1U);
}

TEST_F(FullMemory, EveryWaitingStoreIsServedInTurn) {
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
  held_.resize(host_objects - 2); // room for one of them at a time
  for (auto& ticket : tickets) {
    auto stored = others->wait(ticket, patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, 2U);
  }
}

TEST_F(FullMemory, WaitingStoreCanBeCancelled) {
  auto ticket = client_->submit_store(wish(), patiently());
  ASSERT_TRUE(ticket);
  auto known = client_->cancel(*ticket, patiently());
  ASSERT_TRUE(known);
  EXPECT_TRUE(*known);
  auto stored = client_->wait(*ticket, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::cancelled);
  held_.clear();
  EXPECT_EQ(client_.lookup(wanted_).found_chunks, 0U);
  EXPECT_EQ(client_.store(wanted_), 1U);
}

TEST_F(FullMemory, CancelledRequestGivesWayToTheOneBehindIt) {
  auto large = chain_of(2, 3);
  tester second(daemon_.socket(), "second");
  auto first = client_->submit_store(client_.store_of(large), patiently());
  ASSERT_TRUE(first);
  ASSERT_GE(client_.tier("host").leased_objects, host_objects); // the first has arrived: status is behind it
  auto behind = second->submit_store(second.store_of(wanted_), patiently());
  ASSERT_TRUE(behind);
  held_.pop_back(); // enough for the second alone
  ASSERT_TRUE(client_->cancel(*first, patiently()));
  auto stored = second->wait(*behind, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
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

} // namespace
} // namespace terrace::e2e
