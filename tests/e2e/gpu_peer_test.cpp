// Loads into memory of one GPU from a tier in memory of another one.
#include "gpu_tier_fixture.hpp"
#include "tests/support/process_memory.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

/// The tier is in memory of GPU 0.
class GpuPeer : public gpu_tier_fixture {
 protected:
  void SetUp() override {
    gpu_tier_fixture::SetUp();
    if (GetParam() != device_kind::host && gpus() < 2)
      GTEST_SKIP() << "there is one GPU";
    if (!IsSkipped())
      other_.emplace(GetParam(), region_objects * object_bytes, 1);
  }
  double peer_bytes() const {
    return test::number_behind(test::scrape(port_),
                               "terrace_device_peer_bytes_total{device=\"" + other_->shared().device + "\"}");
  }
  client::registered_region registered_there(tester& by) {
    auto region = by->register_device_region(other_->shared(), patiently());
    if (!region)
      throw std::runtime_error(region.error().text);
    return std::move(*region);
  }
  /// Loads into GPU 1 and compares every byte. Returns how many bytes came from the tier without passing
  /// through host memory.
  uint64_t load_there(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    double before = peer_bytes();
    other_->write(std::vector<uint8_t>(other_->bytes(), 0x5a));
    auto loaded = load_into(by, region, chain, interleaved(chain.size()));
    EXPECT_TRUE(loaded) << loaded.error().text;
    if (!loaded)
      return 0;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    EXPECT_TRUE(other_->read() == laid_out(chain, interleaved(chain.size())));
    return static_cast<uint64_t>(peer_bytes() - before);
  }
  /// Repeats loads, because the first ones find that the arena is not mapped there yet.
  bool reads_there(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    return eventually([&] { return load_there(by, region, chain) == chain.size() * object_bytes; });
  }
  static client::device_status status_of(tester& by, const engine_memory& memory) {
    for (const auto& each : by.status().devices)
      if (each.device == memory.shared().device)
        return each;
    return {};
  }

  std::optional<engine_memory> other_;
};

TEST_P(GpuPeer, ATierIsReadByAnotherGpu) {
  daemon_under_test daemon(with_metrics(8));
  tester client(daemon.socket());
  auto region = registered(client);
  auto there = registered_there(client);
  auto chain = chain_of(1, 6);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  ASSERT_TRUE(reads_there(client, there, chain));
  evict(client, chain, on_host);
  auto before = status_of(client, *other_);
  EXPECT_EQ(load_there(client, there, chain), chain.size() * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U) << "nothing passes host memory";
  auto after = status_of(client, *other_);
  EXPECT_EQ(after.staged_bytes, before.staged_bytes);
  EXPECT_EQ(after.direct_bytes, before.direct_bytes);
  EXPECT_EQ(after.regions, 1U) << "the tier is no client's";
  // The tier does not keep the process of the other GPU.
  EXPECT_TRUE(there.unregister(patiently()));
  EXPECT_TRUE(eventually([&] { return status_of(client, *other_).pid == 0; }));
  EXPECT_EQ(load(client, region, chain), chain.size() * object_bytes);
  there = registered_there(client);
  ASSERT_TRUE(reads_there(client, there, chain)) << "the next one maps it again";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuPeer, WithoutAccessLoadsPassHostMemory) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("lack peers");
  daemon_under_test daemon(with_metrics(8));
  tester client(daemon.socket());
  auto region = registered(client);
  auto there = registered_there(client);
  auto chain = chain_of(1, 6);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  EXPECT_EQ(load_there(client, there, chain), 0U);
  EXPECT_TRUE(daemon.await_log("is not read by another device"));
  evict(client, chain, on_host);
  EXPECT_EQ(load_there(client, there, chain), 0U);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, chain.size());
  EXPECT_EQ(status_of(client, *other_).state, "ready");
}

TEST_P(GpuPeer, TheReaderMayDie) {
  daemon_under_test daemon(with_metrics(8));
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  auto there = registered_there(client);
  auto chain = chain_of(1, 6);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  ASSERT_TRUE(reads_there(client, there, chain));
  pid_t process = status_of(witness, *other_).pid;
  ASSERT_TRUE(test::suspend(process));
  auto request = client.load_of(chain);
  auto runs = interleaved(chain.size());
  request.region = &there;
  request.runs = runs;
  auto loading = client->async().load(request, patiently()).value();
  ASSERT_TRUE(eventually([&] { return witness.tier("gpu").leased_objects != 0; }));
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto lost = loading.wait(patiently());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
  EXPECT_TRUE(eventually([&] { return witness.tier("gpu").leased_objects == 0; })) << "nothing is held";
  EXPECT_EQ(load(client, region, chain), chain.size() * object_bytes) << "the tier is as it was";
  EXPECT_TRUE(there.unregister(patiently()));
  there = registered_there(client);
  EXPECT_TRUE(reads_there(client, there, chain));
  EXPECT_TRUE(daemon.check());
}

TEST_P(GpuPeer, TheOneThatHasTheTierMayDie) {
  daemon_under_test daemon(with_metrics(8));
  tester client(daemon.socket());
  auto region = registered(client);
  auto there = registered_there(client);
  auto chain = chain_of(1, 6);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  ASSERT_TRUE(reads_there(client, there, chain));
  ASSERT_EQ(::kill(status_of(client, *memory_).pid, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return client.tier("gpu").objects == 0; }));
  EXPECT_EQ(load_there(client, there, chain), 0U) << "from host memory";
  EXPECT_EQ(status_of(client, *other_).failures, 0U);
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  ASSERT_TRUE(promoted(client, region, chain)) << "it begins again";
  EXPECT_TRUE(reads_there(client, there, chain));
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuPeer, ::testing::Values(device_kind::cuda_handle), device_name);

} // namespace
} // namespace terrace::e2e
