// A tier in memory of a device: chunks that are loaded into its regions again are copied there.
#include "gpu_tier_fixture.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

class GpuTier : public gpu_tier_fixture {};

TEST_P(GpuTier, WhatIsLoadedAgainIsCopiedOnTheDevice) {
  daemon_under_test daemon(with_metrics(8));
  tester client(daemon.socket());
  auto chain = chain_of(1, 6);
  client.store(chain);
  EXPECT_NE(client.tier("gpu").notice, "") << "nobody has memory of the device";
  EXPECT_EQ(device_of(client).pid, 0) << "no process before the first client";
  auto region = registered(client);
  ASSERT_TRUE(promoted(client, region, chain));
  evict(client, chain, on_host);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U);
  EXPECT_EQ(load(client, region, chain), chain.size() * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U) << "it does not pass host memory";
  auto shown = client.tier("gpu");
  EXPECT_EQ(shown.objects, chain.size());
  EXPECT_EQ(shown.capacity_bytes, 8 * (object_bytes + 4096));
  EXPECT_EQ(shown.bytes_read, chain.size() * object_bytes);
  EXPECT_EQ(counted("objects"), 6);
  EXPECT_EQ(counted("read_bytes_total"), static_cast<double>(chain.size() * object_bytes));
  // A load into memory of the host goes through host memory, and the chain is there again.
  EXPECT_EQ(client.load_and_check(chain), chain.size());
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, chain.size());
  EXPECT_TRUE(region.unregister(patiently()));
  EXPECT_EQ(device_of(client).state, "ready") << "the tier keeps the process";
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, chain.size());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuTier, AChainMayBeginOnTheDeviceAndGoOnInHostMemory) {
  daemon_under_test daemon(options(8));
  tester client(daemon.socket());
  auto chain = chain_of(1, 8);
  std::vector<digest> first(chain.begin(), chain.begin() + 3);
  client.store(chain);
  auto region = registered(client);
  ASSERT_TRUE(promoted(client, region, first));
  evict(client, first, on_host);
  EXPECT_EQ(load(client, region, chain), 3 * object_bytes);
  ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_gpu).found_chunks == 8; }))
      << "the rest was used a second time";
}

TEST_P(GpuTier, ALeaseKeepsWhatItHoldsThere) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket()), holder(daemon.socket(), "holder");
  auto region = registered(client);
  auto chain = chain_of(1, 3), other = chain_of(2, 4);
  client.store(chain);
  client.store(other);
  ASSERT_TRUE(promoted(client, region, chain));
  evict(client, chain, on_host);
  auto held = holder.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 3U);
  for (int i = 0; i < 3; ++i)
    load(client, region, other);
  EXPECT_LE(client.lookup(other, false, on_gpu).found_chunks, 1U) << "one has room beside the lease";
  auto runs = interleaved(3);
  auto request = load_under(client, held.held, region, chain, runs);
  memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
  auto loaded = client->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->bytes_by_tier.at(in_gpu), 3 * object_bytes);
  EXPECT_TRUE(memory_->read() == laid_out(chain, runs));
}

TEST_P(GpuTier, WhatALeaseHoldsAndWasClearedIsNotDelivered) {
  daemon_under_test daemon(options(8));
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  auto chain = chain_of(1, 3);
  only_there(client, region, chain);
  auto held = client.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 3U);
  ASSERT_TRUE(witness->admin().clear(nullptr, patiently()));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.tier("gpu").objects, 0U);
  only_there(client, region, chain_of(2, 2)); // the tier is not empty
  auto runs = interleaved(3);
  auto request = load_under(client, held.held, region, chain, runs);
  auto loaded = client->load(request, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
}

TEST_P(GpuTier, ALeaseMayHoldLessThereThanIsLoadedFromThere) {
  auto half = options(8);
  half.host_bytes = 64 * mebibyte; // a quarter of it has more than the chain
  half.lease = "host_percent = 50\n";
  daemon_under_test daemon(half);
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 8);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  auto held = client.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 8U);
  EXPECT_LT(client.tier("gpu").leased_objects, 8U);
  auto runs = interleaved(8);
  auto request = load_under(client, held.held, region, chain, runs);
  memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
  auto loaded = client->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->bytes_by_tier.at(in_gpu), 8 * object_bytes);
  EXPECT_TRUE(memory_->read() == laid_out(chain, runs));
}

TEST_P(GpuTier, HasThePolicyOfHostMemoryAlsoAfterAReload) {
  auto with = options(8);
  daemon_under_test daemon(with);
  with.host = "policy = \"arc\"\n";
  daemon.configure(with);
  daemon.signal(SIGHUP);
  EXPECT_TRUE(daemon.await_log("the policy of gpu is arc now; it was lru"));
}

TEST_P(GpuTier, IsLostWithItsProcessAndBeginsAgain) {
  daemon_under_test daemon(options(8));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4), both = chain_of(2, 4);
  client.store(chain);
  client.store(both);
  ASSERT_TRUE(promoted(client, region, chain));
  ASSERT_TRUE(promoted(client, region, both));
  evict(client, chain, on_host);
  auto held = client.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 4U);
  ::kill(device_of(client).pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return client.tier("gpu").objects == 0; }));
  EXPECT_NE(client.tier("gpu").reason, "");
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.load_and_check(both), 4U) << "host memory has it as well";
  auto by_lease = [&] {
    auto request = client.load_of(chain);
    request.what = {};
    request.lease = held.held.id();
    return client->load(request, patiently());
  };
  auto gone = by_lease();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, errc::gone) << gone.error().text;
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  EXPECT_EQ(client.tier("gpu").reason, "");
  ASSERT_TRUE(promoted(client, region, both));
  EXPECT_EQ(load(client, region, both), 4 * object_bytes);
  auto stale = by_lease();
  EXPECT_TRUE(!stale || stale->delivered_chunks == 0) << "other bytes are there now";
  EXPECT_EQ(daemon.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuTier, tier_devices(), device_name);

TEST(GpuTierAlone, IsNotThereByDefault) {
  gpu_daemon::faults("");
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto shown = client.status();
  for (const auto& tier : shown.groups.at(0).tiers)
    EXPECT_NE(tier.tier, "gpu");
  auto chain = chain_of(1, 2);
  client.store(chain);
  client::prompt_request prompt{.in = client.space(), .what = client::prefix::of_digests(chain)};
  auto moved = client->admin().move(prompt, tier_kind::gpu, patiently());
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, errc::unsupported);
  EXPECT_NE(moved.error().text.find("gpu.tier_bytes"), std::string::npos) << moved.error().text;
  client::prefetch_request wanted{.in = client.space(), .what = client::prefix::of_digests(chain)};
  wanted.to = tier_kind::gpu;
  auto prefetched = client->prefetch(wanted, patiently());
  ASSERT_FALSE(prefetched);
  EXPECT_EQ(prefetched.error().code, errc::unsupported);
  std::filesystem::remove(gpu_daemon::script());
}

TEST(GpuTierAlone, WithoutRoomForItsArenaEverythingElseServes) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  gpu_daemon::faults("");
  engine_memory mine(device_kind::cuda_handle, region_objects * object_bytes);
  gpu_daemon daemon("tier_bytes = \"1TiB\"\ntier_device = \"" + mine.shared().device + "\"\n");
  tester client(daemon.socket());
  auto region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  ASSERT_TRUE(eventually([&] { return !client.tier("gpu").reason.empty(); }));
  auto chain = chain_of(1, 4);
  client.store(chain);
  mine.write(std::vector<uint8_t>(mine.bytes(), 0x5a));
  ASSERT_TRUE(load_into(client, *region, chain, interleaved(4)));
  EXPECT_TRUE(mine.read() == laid_out(chain, interleaved(4)));
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 0U);
  EXPECT_EQ(daemon.terminate(), 0);
  std::filesystem::remove(gpu_daemon::script());
}

} // namespace
} // namespace terrace::e2e
