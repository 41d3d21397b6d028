// A tier in memory of a device: what is loaded into its regions again is copied there.
#include "command_line.hpp"
#include "gpu_daemon.hpp"
#include "tests/support/scrape.hpp"

#include <csignal>
#include <future>
#include <stdexcept>

namespace terrace::e2e {
namespace {

constexpr auto in_gpu = static_cast<size_t>(tier_kind::gpu);
constexpr uint32_t on_gpu = 1U << static_cast<unsigned>(tier_kind::gpu);

class GpuTier : public ::testing::TestWithParam<device_kind> {
 protected:
  void SetUp() override {
    gpu_daemon::faults("");
    if (GetParam() != device_kind::host && test::sanitized("thread"))
      GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
    memory_.emplace(GetParam(), region_objects * object_bytes);
  }
  void TearDown() override { std::filesystem::remove(gpu_daemon::script()); }

  /// A daemon with a tier for so many objects.
  daemon_options options(uint64_t objects, const std::string& more = {}) const {
    auto made = gpu_daemon::options_of("deadline = \"10s\"\ntier_device = \"" + memory_->shared().device +
                                       "\"\ntier_bytes = " + std::to_string(objects * (object_bytes + 4096)) +
                                       "\ntier_allocator = \"free_list\"\ntier_policy = \"lru\"\n" + more);
    return made;
  }
  client::registered_region registered(tester& by) {
    auto region = by->register_device_region(memory_->shared(), patiently());
    if (!region)
      throw std::runtime_error(region.error().text);
    auto serves = [&] { return by.tier("gpu").state == "ready" && by.tier("gpu").notice.empty(); };
    EXPECT_TRUE(eventually(serves)) << "the tier does not begin";
    return std::move(*region);
  }
  /// Loads into the region and compares every byte. Returns how many bytes came from the tier.
  uint64_t load(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto loaded = load_into(by, region, chain, interleaved(chain.size()));
    EXPECT_TRUE(loaded) << loaded.error().text;
    if (!loaded)
      return 0;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    EXPECT_TRUE(memory_->read() == laid_out(chain, interleaved(chain.size())));
    return loaded->bytes_by_tier.at(in_gpu);
  }
  /// By a load from host memory. False: it is not all in the tier.
  bool promoted(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    load(by, region, chain);
    return eventually([&] { return by.lookup(chain, false, on_gpu).found_chunks == chain.size(); });
  }
  /// In the tier and nowhere else.
  void only_there(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    by.store(chain);
    ASSERT_TRUE(promoted(by, region, chain));
    evict(by, chain, on_host);
    EXPECT_EQ(by.lookup(chain, false, on_host).found_chunks, 0U);
  }
  static result<client::move_result> move(tester& by, const std::vector<digest>& chain, tier_kind to) {
    return by->move({.in = by.space(), .what = client::prefix::of_digests(chain)}, to, patiently());
  }
  static void evict(tester& by, const std::vector<digest>& chain, uint32_t tiers) {
    auto gone =
        by->evict({.in = by.space(), .what = client::prefix::of_digests(chain), .tiers = tiers}, patiently());
    EXPECT_TRUE(gone) << gone.error().text;
  }

  std::optional<engine_memory> memory_;
};

TEST_P(GpuTier, WhatIsLoadedAgainIsCopiedOnTheDevice) {
  auto with = options(8);
  auto port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  daemon_under_test daemon(with);
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
  auto scraped = test::scrape(port);
  EXPECT_EQ(test::number_behind(scraped, "terrace_tier_objects{group=\"default\",tier=\"gpu\"}"), 6);
  EXPECT_EQ(test::number_behind(scraped, "terrace_tier_read_bytes_total{group=\"default\",tier=\"gpu\"}"),
            static_cast<double>(chain.size() * object_bytes));
  // Into memory of the host it passes host memory, and is there again.
  EXPECT_EQ(client.load_and_check(chain), chain.size());
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, chain.size());
  EXPECT_TRUE(client->unregister(std::move(region), patiently()));
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

TEST_P(GpuTier, UnderPressureTheOldestLeave) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket());
  auto region = registered(client);
  std::vector<std::vector<digest>> chains;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    chains.push_back(chain_of(seed, 3));
    client.store(chains.back());
    ASSERT_TRUE(promoted(client, region, chains.back()));
    EXPECT_LE(client.tier("gpu").used_bytes, client.tier("gpu").capacity_bytes);
  }
  EXPECT_EQ(load(client, region, chains[3]), 3 * object_bytes);
  EXPECT_LE(client.lookup(chains[0], false, on_gpu).found_chunks, 1U);
  EXPECT_LE(load(client, region, chains[0]), object_bytes) << "the others come from host memory";
}

TEST_P(GpuTier, WhatItEvictsComesBackToHostMemory) {
  auto with = options(4);
  auto port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  daemon_under_test daemon(with);
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  only_there(client, region, chain);
  client.store(other);
  ASSERT_TRUE(promoted(client, region, other));
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 0U);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 4U);
  EXPECT_EQ(client.load_and_check(chain), 4U) << "every byte";
  auto scraped = test::scrape(port);
  EXPECT_EQ(test::number_behind(scraped, "terrace_tier_demoted_total{group=\"default\",tier=\"gpu\"}"), 4);
  EXPECT_EQ(test::number_behind(scraped, "terrace_tier_demoted_bytes_total{group=\"default\",tier=\"gpu\"}"),
            static_cast<double>(4 * object_bytes));
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuTier, WhatItEvictsIsLostIfDemotionIsOff) {
  daemon_under_test daemon(options(4, "tier_demotion = \"off\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  only_there(client, region, chain);
  client.store(other);
  ASSERT_TRUE(promoted(client, region, other));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
}

TEST_P(GpuTier, WhatIsUsedThereAgainIsCopiedToHostMemoryIfDemotionIsSelective) {
  daemon_under_test daemon(options(4, "tier_demotion = \"selective\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4);
  only_there(client, region, chain);
  for (int use = 0; use < 2; ++use)
    EXPECT_EQ(load(client, region, chain), 4 * object_bytes);
  ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_host).found_chunks == 4; }));
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 4U);
}

TEST_P(GpuTier, ItsProcessMayDieWhileItGivesBack) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket()), mover(daemon.socket(), "mover");
  auto region = registered(client);
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  only_there(client, region, chain);
  client.store(other);
  uint64_t before = client.tier("host").used_bytes;
  pid_t process = device_of(client).pid;
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  auto moving = std::async(std::launch::async, [&] { return move(mover, other, tier_kind::gpu); });
  // It waits for the victims, which wait for the process.
  ASSERT_TRUE(eventually([&] { return client.tier("host").leased_objects != 0; }));
  EXPECT_EQ(client.load_and_check(other), 4U) << "host memory serves";
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto moved = moving.get();
  ASSERT_TRUE(moved) << moved.error().text;
  EXPECT_EQ(moved->failed.chunks, 4U);
  ASSERT_TRUE(eventually([&] { return client.tier("gpu").objects == 0; }));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U) << "it was nowhere else";
  EXPECT_EQ(client.load_and_check(other), 4U);
  ASSERT_TRUE(eventually([&] { return client.tier("host").leased_objects == 0; }))
      << "nothing is held any more";
  EXPECT_TRUE(eventually([&] { return client.tier("host").used_bytes == before; })) << "nor reserved";
  EXPECT_TRUE(daemon.check());
  EXPECT_TRUE(client->unregister(std::move(region), patiently()));
  region = registered(client);
  ASSERT_TRUE(promoted(client, region, other)) << "it begins again";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuTier, MovesAndPrefetchesMayGoThere) {
  daemon_under_test daemon(options(8));
  tester client(daemon.socket());
  auto chain = chain_of(1, 4), more = chain_of(2, 4);
  client.store(chain);
  client.store(more);
  auto early = move(client, chain, tier_kind::gpu);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, errc::unsupported);
  EXPECT_NE(early.error().text.find("when a client registers memory"), std::string::npos)
      << early.error().text;
  auto region = registered(client);
  auto moved = move(client, chain, tier_kind::gpu);
  ASSERT_TRUE(moved) << moved.error().text;
  EXPECT_EQ(moved->moved.chunks, 4U);
  EXPECT_EQ(moved->moved.bytes, 4 * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 4U);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 4U) << "the copies below stay";
  evict(client, chain, on_host);
  EXPECT_EQ(load(client, region, chain), 4 * object_bytes);
  auto again = move(client, chain, tier_kind::gpu);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->present.chunks, 4U);
  client::prefetch_request wanted{.in = client.space(), .what = client::prefix::of_digests(more)};
  wanted.rule = client::stop_rule::wait;
  wanted.to = tier_kind::gpu;
  auto done = client->prefetch(wanted, patiently());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->delivered_chunks, 4U);
  EXPECT_EQ(done->end, client::prefetch_end::complete);
  EXPECT_EQ(load(client, region, more), 4 * object_bytes);
  auto unknown = move(client, chain_of(3, 2), tier_kind::gpu);
  ASSERT_TRUE(unknown) << unknown.error().text;
  EXPECT_EQ(unknown->missing.chunks, 2U);
  auto back = move(client, chain, tier_kind::host);
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->moved.chunks, 4U);
  EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuTier, APromptOnDiskMovesThereByTheCommandAndEndsOnDisk) {
  auto with = options(8);
  with.disk_bytes = 64 * mebibyte;
  with.disk = "admission = \"always\"\ndemotion = \"write_back\"\n";
  daemon_under_test daemon(with);
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 4);
  {
    tester client(daemon.socket());
    auto region = registered(client);
    client.store(chain);
    auto down = move(client, chain, tier_kind::disk);
    ASSERT_TRUE(down) << down.error().text;
    EXPECT_EQ(down->moved.chunks, 4U);
    std::string digests;
    for (const digest& one : chain)
      digests += (digests.empty() ? "" : ",") + to_hex(one);
    auto done =
        terrace(daemon, {"move", "--to", "gpu", "--model", "test", "--dtype", "u8", "--layout", "opaque",
                         "--pool", "kv:1MiB", "--chunk-tokens", "16", "--digests", digests});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("4 chunks, 4.00 MiB"), std::string::npos) << done.out;
    EXPECT_EQ(load(client, region, chain), 4 * object_bytes);
    evict(client, chain, on_host | on_disk);
    down = move(client, chain, tier_kind::disk);
    ASSERT_TRUE(down) << down.error().text;
    EXPECT_EQ(down->moved.chunks, 4U) << "what only the GPU tier had";
    EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U);
    EXPECT_EQ(client.lookup(chain, false, on_gpu | on_host).found_chunks, 0U);
    auto up = move(client, chain, tier_kind::gpu);
    ASSERT_TRUE(up) << up.error().text;
    EXPECT_EQ(up->moved.chunks, 4U);
    // Now nowhere else.
    evict(client, chain, on_host | on_disk);
    EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 4U);
    EXPECT_EQ(client.lookup(chain, false, on_host | on_disk).found_chunks, 0U);
  }
  EXPECT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U) << "it was written down at the end";
  EXPECT_EQ(client.load_and_check(chain), 4U);
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
  auto request = client.load_of(chain);
  request.what = {};
  request.lease = held.held.id();
  request.region = &region;
  request.runs = runs;
  memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
  auto loaded = client->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->bytes_by_tier.at(in_gpu), 3 * object_bytes);
  EXPECT_TRUE(memory_->read() == laid_out(chain, runs));
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
  EXPECT_TRUE(client->unregister(std::move(region), patiently()));
  region = registered(client);
  EXPECT_EQ(client.tier("gpu").reason, "");
  ASSERT_TRUE(promoted(client, region, both));
  EXPECT_EQ(load(client, region, both), 4 * object_bytes);
  auto stale = by_lease();
  EXPECT_TRUE(!stale || stale->delivered_chunks == 0) << "other bytes are there now";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuTier, AClearEmptiesItToo) {
  daemon_under_test daemon(options(8));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4);
  client.store(chain);
  ASSERT_TRUE(promoted(client, region, chain));
  ASSERT_TRUE(client->clear(nullptr, patiently()));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.tier("gpu").objects, 0U);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuTier, ::testing::Values(device_kind::host, device_kind::cuda_handle),
                         [](const auto& each) { return to_string(each.param); });

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
  auto moved = client->move(prompt, tier_kind::gpu, patiently());
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
