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

} // namespace
} // namespace terrace::e2e
