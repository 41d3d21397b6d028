// A remote tier behind a slow link: a client that declares how fast it computes gets what has come once a read falls behind, and the
// rest is left to it. What is decided is asserted, not how long it takes: bench/ measures that (`remote_slow_link`).
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"
#include "tests/support/slow_link.hpp"

#include <thread>

namespace terrace::e2e {
namespace slow_link_test {

using namespace std::chrono_literals;

constexpr uint32_t chunks = 24;
/// A chunk in 0.16 s, as if it were read at 6.5 MB/s.
constexpr uint32_t prefill_tokens_per_s = 100;
constexpr test::slow_link::speed fast{}, slow{.bytes_per_s = 2e6, .round_trip = 50ms};

/// All that is stored is in the store alone.
class RemoteSlowLink : public RemoteStores {
 protected:
  void SetUp() override {
    RemoteStores::SetUp();
    if (IsSkipped())
      return;
    start_store();
    link_.emplace(test::slow_link::ends{folder_ / "slow.sock", folder_ / "redis.sock"});
    metrics_port_ = test::free_port();
    machine_.emplace(daemon_options{.host_bytes = 64 * mebibyte,
                                    .metrics = "127.0.0.1:" + std::to_string(metrics_port_),
                                    .more = "[[remote]]\naddress = \"" + folder_.path() +
                                            "/slow.sock\"\nrealm_key_file = \"" + key_file() +
                                            "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n"});
    machine_->await_store();
    auto spec = test_space();
    spec.prefill_tokens_per_s = prefill_tokens_per_s;
    engine_.emplace(machine_->daemon.socket(), "engine", chunks * object_bytes, spec);
  }

  tester& undeclared() { return *machine_->client; }
  void store_far(const std::vector<digest>& chain) {
    EXPECT_EQ(engine_->store(chain), chain.size());
    ASSERT_TRUE(machine_->finds_all(chain, on_remote));
    chill(*machine_, chain);
    EXPECT_TRUE(machine_->finds_all(chain));
  }
  /// Reads over the link, so that its speed is known.
  void measure() {
    const auto other = chain_of(100, 8);
    store_far(other);
    EXPECT_EQ(undeclared().load_and_check(other), other.size());
    ASSERT_GT(undeclared().tier("remote").read_bytes_per_s, 0U);
  }
  uint64_t late_reads() { return counted("terrace_late_reads_total{group=\"default\"}"); }
  uint64_t counted(const std::string& series) {
    const auto text = test::scrape(metrics_port_);
    const std::string line = series + " ";
    const auto at = text.find(line);
    EXPECT_NE(at, std::string::npos);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + line.size()));
  }
  /// Everything is read, after what is on its way has come.
  void link_is_fast_again() {
    link_->become(fast);
    EXPECT_TRUE(eventually([&] { return undeclared().lookup(chain_).found_chunks == chunks; }));
    EXPECT_EQ(undeclared().load_and_check(chain_), chunks);
  }

  std::optional<test::slow_link> link_;
  uint16_t metrics_port_ = 0;
  std::optional<remote_machine> machine_;
  std::optional<tester> engine_;
  const std::vector<digest> chain_ = chain_of(1, chunks);
};

TEST_F(RemoteSlowLink, AFastLinkIsReadAsAWhole) {
  measure();
  store_far(chain_);
  auto loaded = (*engine_)->load(engine_->load_of(chain_), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks + loaded->recompute_chunks, chunks);
  if (late_reads() == 0) { // the machine was not too busy
    EXPECT_EQ(loaded->delivered_chunks, chunks);
  }
}

TEST_F(RemoteSlowLink, ALoadThatFallsBehindDeliversWhatHasCome) {
  measure();
  store_far(chain_);
  link_->become(slow);
  const uint64_t passed = link_->passed_bytes();
  auto loaded = (*engine_)->load(engine_->load_of(chain_), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_LT(loaded->delivered_chunks, chunks);
  EXPECT_EQ(loaded->delivered_chunks + loaded->recompute_chunks, chunks);
  EXPECT_FALSE(loaded->missing);
  for (size_t i = 0; i < loaded->delivered_chunks; ++i)
    EXPECT_TRUE(has_content(chain_[i], engine_->piece(i)));
  EXPECT_EQ(late_reads(), 1U);
  EXPECT_LT(link_->passed_bytes() - passed, chunks * object_bytes);
  link_is_fast_again();
}

TEST_F(RemoteSlowLink, WhatHasComeOfALongReadIsDelivered) {
  link_->become({.bytes_per_s = 20e6, .round_trip = 10ms});
  measure();
  store_far(chain_);
  link_->become({.bytes_per_s = 4e6, .round_trip = 50ms}); // 24 MiB take 6 s instead of 1.3
  auto loaded = (*engine_)->load(engine_->load_of(chain_), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_GT(loaded->delivered_chunks, 0U);
  EXPECT_LT(loaded->delivered_chunks, chunks);
  EXPECT_EQ(loaded->delivered_chunks + loaded->recompute_chunks, chunks);
  for (size_t i = 0; i < loaded->delivered_chunks; ++i)
    EXPECT_TRUE(has_content(chain_[i], engine_->piece(i)));
  EXPECT_EQ(late_reads(), 1U);
  link_is_fast_again();
}

TEST_F(RemoteSlowLink, APrefetchThatFallsBehindIsCompleteWithoutTheRest) {
  measure();
  store_far(chain_);
  link_->become(slow);
  auto done = (*engine_)->prefetch(
      {.in = engine_->space(), .what = client::prefix::of_digests(chain_), .rule = client::stop_rule::wait},
      patiently());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->end, client::prefetch_end::complete);
  EXPECT_LT(done->delivered_chunks, chunks);
  EXPECT_EQ(done->delivered_chunks, done->expected_chunks);
  EXPECT_EQ(done->delivered_chunks + done->recompute_chunks, chunks);
  EXPECT_EQ(late_reads(), 1U);
  link_is_fast_again();
}

TEST_F(RemoteSlowLink, ALeaseHoldsWhatHasCome) {
  measure();
  store_far(chain_);
  link_->become(slow);
  const uint64_t passed = link_->passed_bytes();
  auto found = engine_->lookup(chain_, true);
  EXPECT_LT(found.found_chunks, chunks);
  EXPECT_LT(link_->passed_bytes() - passed, chunks * object_bytes);
  EXPECT_EQ(late_reads(), 1U);
  found.held.release();
  link_is_fast_again();
}

TEST_F(RemoteSlowLink, AClientThatDeclaresNothingGetsEverything) {
  measure();
  store_far(chain_);
  link_->become({.bytes_per_s = 12e6, .round_trip = 50ms});
  EXPECT_EQ(undeclared().load_and_check(chain_), chunks);
  EXPECT_EQ(late_reads(), 0U);
}

/// The trial is ended, and its speed is known afterwards: nothing else is read before it is paid for.
TEST_F(RemoteSlowLink, OfALinkThatWasNotMeasuredLittleIsRead) {
  store_far(chain_);
  link_->become(slow);
  const uint64_t passed = link_->passed_bytes();
  uint32_t delivered = 0;
  for (int i = 0; i < 8; ++i) {
    auto loaded = (*engine_)->load(engine_->load_of(chain_), patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks + loaded->recompute_chunks, chunks);
    delivered = std::max(delivered, loaded->delivered_chunks);
  }
  EXPECT_LT(delivered, 8U) << "0.64 MB come while two chunks are computed";
  EXPECT_LT(link_->passed_bytes() - passed, 8 * mebibyte) << "a trial asks for 4 MiB at a time";
  EXPECT_EQ(late_reads(), 1U);
}

TEST_F(RemoteSlowLink, AConnectionThatIsLostInAReadCostsNothing) {
  store_far(chain_);
  link_->become({.bytes_per_s = 20e6, .round_trip = 1ms});
  const uint64_t passed = link_->passed_bytes();
  std::thread lost([&] {
    EXPECT_TRUE(eventually([&] { return link_->passed_bytes() - passed > 2 * object_bytes; }));
    link_->cut();
  });
  EXPECT_EQ(undeclared().load_and_check(chain_), chunks);
  lost.join();
  EXPECT_GT(counted("terrace_remote_retries_total{group=\"default\",tier=\"remote\",command=\"read\"}"), 0U);
}

} // namespace slow_link_test
} // namespace terrace::e2e
