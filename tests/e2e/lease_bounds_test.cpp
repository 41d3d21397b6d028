// How much the leases of one client leave for the others, without a disk.
#include "workload.hpp"

namespace terrace::e2e {
namespace lease_bounds_test {

constexpr uint64_t host_objects = 31; // in 32 MiB; all leases together hold at most 23

class LeaseBounds : public ::testing::TestWithParam<client::hit_rule> {
 protected:
  static client::space_spec spec() {
    auto spec = test_space();
    spec.pools[0].rule = GetParam();
    return spec;
  }

  /// Stores chains of one chunk and leases them, until no more are leased.
  std::vector<client::lease> lease_all(tester& by, uint64_t seed) {
    std::vector<client::lease> held;
    for (uint64_t i = 0; i < 2 * host_objects; ++i) {
      auto one = chain_of(seed + i, 1);
      EXPECT_EQ(by.store(one), 1U);
      if (auto found = by.lookup(one, true); found.found_chunks == 1)
        held.push_back(std::move(found.held));
    }
    return held;
  }

  daemon_under_test daemon_{{.lease = {}}}; // the default bounds
};

TEST_P(LeaseBounds, AClientThatLeasesAllItCanStopsNoStore) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, spec());
  auto held = lease_all(greedy, 100);
  EXPECT_LE(held.size(), 17U); // three quarters of 23
  EXPECT_GE(held.size(), 16U);

  auto small = test_space();
  small.pools[0].object_bytes = 8192;
  tester other(daemon_.socket(), "other", object_bytes, small);
  auto chunk = chain_of(1, 1);
  fill_content(chunk[0], other.piece(0));
  client::run run{.offset = 0, .bytes = 8192};
  auto request = other.store_of(chunk);
  request.runs = {&run, 1};
  auto stored = other->store(request, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 1U);
}

TEST_P(LeaseBounds, EachFurtherClientFindsAShare) {
  std::vector<std::unique_ptr<tester>> clients;
  std::vector<std::vector<client::lease>> held;
  for (uint64_t i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<tester>(daemon_.socket(), "greedy", 8 * object_bytes, spec()));
    held.push_back(lease_all(*clients.back(), 1000 * (i + 1)));
  }
  EXPECT_GE(held[1].size(), 4U);
  EXPECT_GE(held[2].size(), 1U);
  EXPECT_LE(held[0].size() + held[1].size() + held[2].size(), 23U);
  held.clear();
  EXPECT_EQ(leased_objects(*clients[0], 0), 0U);
}

TEST_P(LeaseBounds, ALeaseOnWhatIsLeasedAlreadyIsNeverShortened) {
  tester first(daemon_.socket(), "first", 8 * object_bytes, spec());
  tester second(daemon_.socket(), "second", 8 * object_bytes, spec());
  std::vector<client::lease> held;
  for (uint64_t i = 0; i < 16; ++i) {
    auto one = chain_of(100 + i, 1);
    EXPECT_EQ(first.store(one), 1U);
    auto found = first.lookup(one, true);
    ASSERT_EQ(found.found_chunks, 1U);
    held.push_back(std::move(found.held));
    auto shared = second.lookup(one, true);
    ASSERT_EQ(shared.found_chunks, 1U);
    held.push_back(std::move(shared.held));
  }
}

TEST_P(LeaseBounds, WhatCanOnlyWaitForLeasesIsToldAtOnce) {
  tester greedy(daemon_.socket(), "greedy", 8 * object_bytes, spec());
  auto held = lease_all(greedy, 100);
  auto large = test_space();
  large.pools[0].object_bytes = 18 * mebibyte;
  tester other(daemon_.socket(), "other", 18 * mebibyte, large);
  auto chunk = chain_of(1, 1);
  client::run run{.offset = 0, .bytes = 18 * mebibyte};
  auto request = other.store_of(chunk);
  request.runs = {&run, 1};
  auto stored = other->store(request, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space);
  EXPECT_NE(stored.error().text.find("only the end of leases can make"), std::string::npos)
      << stored.error().text;
  held.clear();
  EXPECT_EQ(leased_objects(greedy, 0), 0U);
  stored = other->store(request, patiently());
  EXPECT_TRUE(stored) << stored.error().text;
}

INSTANTIATE_TEST_SUITE_P(Rules, LeaseBounds,
                         ::testing::Values(client::hit_rule::all_chunks, client::hit_rule::trailing_chunks),
                         [](const auto& one) {
                           return one.param == client::hit_rule::all_chunks ? "AllChunks" : "TrailingChunks";
                         });

// ---- on disk ----

constexpr uint64_t disk_bytes = 34 * mebibyte;

struct DiskLeases : ::testing::Test {
  daemon_under_test daemon{{.host_bytes = 8 * mebibyte,
                            .disk_bytes = disk_bytes,
                            .disk = "admission = \"always\"\n",
                            .lease = {}}};

  void SetUp() override { ASSERT_TRUE(daemon.await_log("joined")); }

  static bool on_disk_soon(tester& by, const std::vector<digest>& chain) {
    return eventually([&] { return by.lookup(chain, false, on_disk).found_chunks == chain.size(); });
  }
  /// Leases chunks that are on disk until no more are leased. Other chunks than these are evicted.
  static std::vector<client::lease> lease_all(tester& by, uint64_t seed) {
    std::vector<client::lease> held;
    for (uint64_t i = 0; i < 2 * disk_bytes / object_bytes; ++i) {
      auto one = chain_of(seed + i, 1);
      EXPECT_EQ(by.store(one), 1U);
      EXPECT_TRUE(on_disk_soon(by, one)) << i;
      if (auto found = by.lookup(one, true, on_disk); found.found_chunks == 1)
        held.push_back(std::move(found.held));
    }
    return held;
  }
};

TEST_F(DiskLeases, AClientThatLeasesAllItCanStopsNoWrite) {
  tester greedy(daemon.socket(), "greedy");
  auto held = lease_all(greedy, 1000);
  EXPECT_GE(held.size(), 10U);
  tester other(daemon.socket(), "other");
  for (uint64_t i = 0; i < 12; ++i) { // more than a lease leaves free
    auto one = chain_of(1 + i, 1);
    ASSERT_EQ(other.store(one), 1U);
    EXPECT_TRUE(on_disk_soon(other, one)) << i;
  }
}

TEST_F(DiskLeases, ShareTheDiskLikeHostMemory) {
  tester first(daemon.socket(), "first"), second(daemon.socket(), "second");
  auto held = lease_all(first, 1000);
  auto others = lease_all(second, 5000);
  EXPECT_GE(others.size(), 2U) << "three quarters of what the first left of its share";
  EXPECT_LT(others.size(), held.size());
  EXPECT_LE((held.size() + others.size()) * object_bytes, disk_bytes * 3 / 4);
}

} // namespace lease_bounds_test
} // namespace terrace::e2e
