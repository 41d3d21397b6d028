// Memory is released where nobody waits for it: no worker unmaps regions, segments or staging memory, or
// closes their descriptors.
#include "tests/support/watched_calls.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace terrace::e2e {
namespace teardown_test {

constexpr uint64_t gibibyte = 1ULL << 30;

class Teardown : public ::testing::Test {
 protected:
  /// One worker, so that nobody is served while it does something else.
  daemon_options options(uint64_t segments = 4) {
    return {.workers = 1,
            .host_bytes = segments * 8 * mebibyte,
            .host = "segment_bytes = \"8MiB\"\n",
            .before_exec = [this] { calls_.install(); }};
  }

  void expect_served() {
    EXPECT_EQ(witness_.load_and_check(chain_), chain_.size());
    EXPECT_EQ(witness_.lookup(chain_).found_chunks, chain_.size());
    EXPECT_EQ(witness_.status().workers, 1U);
  }

  void TearDown() override {
    if (test::sanitized("thread"))
      return; // a sanitizer unmaps its own records of any range that ends, also of a reservation
    // A worker may close a duplicate that it made for sending, which is never the last descriptor of the
    // memory.
    for (const auto& call : calls_.seen())
      EXPECT_FALSE(call.thread.starts_with("worker") && call.what.find("memfd:terrace") == std::string::npos)
          << call.thread << ": " << call.what;
  }

  test::watched_calls calls_;
  daemon_under_test daemon_{options()};
  tester witness_{daemon_.socket(), "witness", 4 * object_bytes};
  std::vector<digest> chain_ = chain_of(1, 4);
};

TEST_F(Teardown, ClientsAreServedWhileALargeRegionIsUnmapped) {
  witness_.store(chain_);
  std::optional<tester> client(std::in_place, daemon_.socket(), "client");
  unique_fd memory(::memfd_create("large-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), 64 * gibibyte), 0);
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  auto region = (*client)->register_region(memory.get(), 64 * gibibyte, patiently());
  ASSERT_TRUE(region) << region.error().text;
  memory.reset(); // the last close is the daemon's
  calls_.hold();
  region = {};
  client.reset();
  auto held = calls_.await_held();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->thread, "teardown");
  expect_served();
  tester another(daemon_.socket(), "another");
  EXPECT_EQ(another.store(chain_of(2, 4)), 4U);
  calls_.let_go();
  EXPECT_TRUE(calls_.await_seen("teardown", "unmap " + std::to_string(64 * gibibyte)));
  EXPECT_TRUE(calls_.await_seen("teardown", "close /memfd:large-region"));
  expect_served();
}

TEST_F(Teardown, UnsealedRegionsAndRefusedOnesAreClosedThereToo) {
  unique_fd memory(::memfd_create("unsealed-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), gibibyte), 0);
  { auto region = witness_->register_region(memory.get(), gibibyte, patiently()).value(); }
  EXPECT_TRUE(calls_.await_seen("teardown", "close /memfd:unsealed-region"));

  unique_fd small(::memfd_create("refused-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(witness_->register_region(small.get(), gibibyte, patiently()));
  EXPECT_TRUE(calls_.await_seen("teardown", "close /memfd:refused-region"));
}

TEST_F(Teardown, StagingMemoryAndSegmentsAreReleasedThere) {
  {
    tester writer(daemon_.socket(), "writer");
    auto staged = chain_of(3, 2);
    auto reserved =
        writer->reserve({.in = writer.space(), .what = client::prefix::of_digests(staged)}, patiently());
    ASSERT_TRUE(reserved) << reserved.error().text;
  }
  EXPECT_TRUE(calls_.await_seen("teardown", "close /memfd:terrace-staging"));

  daemon_.configure(options(2));
  daemon_.signal(SIGHUP);
  ASSERT_TRUE(daemon_.await_log("segment 3 was removed"));
  EXPECT_TRUE(calls_.await_seen("teardown", "close /memfd:terrace-default-3"));
}

} // namespace teardown_test
} // namespace terrace::e2e
