// Evictions from a tier in memory of a device, and moves into it by an operator or an engine.
#include "command_line.hpp"
#include "gpu_tier_fixture.hpp"
#include "tests/support/process_memory.hpp"

#include <csignal>
#include <future>

namespace terrace::e2e {
namespace {

class GpuDemotion : public gpu_tier_fixture {};

TEST_P(GpuDemotion, WhatItEvictsComesBackToHostMemory) {
  daemon_under_test daemon(with_metrics(4));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  only_there(client, region, chain);
  client.store(other);
  ASSERT_TRUE(promoted(client, region, other));
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 0U);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 4U);
  EXPECT_EQ(client.load_and_check(chain), 4U) << "every byte";
  EXPECT_EQ(counted("demoted_total"), 4);
  EXPECT_EQ(counted("demoted_bytes_total"), static_cast<double>(4 * object_bytes));
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuDemotion, WhatIsUsedThereAgainIsCopiedToHostMemoryIfDemotionIsSelective) {
  daemon_under_test daemon(options(8, "tier_demotion = \"selective\"\n")); // half of them at a time
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4);
  only_there(client, region, chain);
  EXPECT_EQ(load(client, region, chain), 4 * object_bytes);
  ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_host).found_chunks == 4; }));
  EXPECT_EQ(client.lookup(chain, false, on_gpu).found_chunks, 4U);
}

TEST_P(GpuDemotion, ItsProcessMayDieWhileItGivesBack) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket()), mover(daemon.socket(), "mover");
  auto region = registered(client);
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  only_there(client, region, chain);
  client.store(other);
  uint64_t before = client.tier("host").used_bytes;
  pid_t process = device_of(client).pid;
  ASSERT_TRUE(test::suspend(process));
  auto moving = std::async(std::launch::async, [&] { return move(mover, other, tier_kind::gpu); });
  // It waits for the victims, which wait for the process.
  ASSERT_TRUE(eventually([&] { return client.tier("host").used_bytes > before; })) << "it is reserved";
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
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  ASSERT_TRUE(promoted(client, region, other)) << "it begins again";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuDemotion, MovesAndPrefetchesMayGoThere) {
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
  EXPECT_EQ(client.lookup(chain).tiers, std::vector<tier_kind>(4, tier_kind::gpu));
  auto present = move(client, chain, tier_kind::gpu);
  ASSERT_TRUE(present) << present.error().text;
  EXPECT_EQ(present->present.chunks, 4U);
  EXPECT_EQ(present->moved.chunks, 0U);
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

TEST_P(GpuDemotion, APromptOnDiskMovesThereByTheCommandAndEndsOnDisk) {
  auto with = options(8);
  with.disk_bytes = 64 * mebibyte;
  with.disk += "admission = \"always\"\ndemotion = \"write_back\"\n";
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
    // Held objects do not leave, and a load ends its holds after it is answered.
    ASSERT_TRUE(eventually([&] { return client.tier("gpu").leased_objects == 0; }));
    evict(client, chain, on_host | on_disk);
    down = move(client, chain, tier_kind::disk);
    ASSERT_TRUE(down) << down.error().text;
    EXPECT_EQ(down->moved.chunks, 4U) << "what only the GPU tier had";
    EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U);
    EXPECT_EQ(client.lookup(chain, false, on_gpu | on_host).found_chunks, 0U);
    auto up = move(client, chain, tier_kind::gpu);
    ASSERT_TRUE(up) << up.error().text;
    EXPECT_EQ(up->moved.chunks, 4U);
    // From now on the chain is nowhere else.
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

TEST_P(GpuDemotion, ItsProcessMayDieWhileAPromptLeavesItForTheDisk) {
  auto with = options(4);
  with.disk_bytes = 64 * mebibyte;
  with.disk += "admission = \"always\"\ndemotion = \"off\"\n";
  daemon_under_test daemon(with);
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket()), mover(daemon.socket(), "mover");
  auto region = registered(client);
  auto chain = chain_of(1, 4);
  only_there(client, region, chain);
  pid_t process = device_of(client).pid;
  ASSERT_TRUE(test::suspend(process));
  auto moving = std::async(std::launch::async, [&] { return move(mover, chain, tier_kind::disk); });
  ASSERT_TRUE(eventually([&] { return client.tier("host").used_bytes != 0; })) << "it is reserved";
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto moved = moving.get();
  ASSERT_TRUE(moved) << moved.error().text;
  EXPECT_EQ(moved->failed.chunks + moved->missing.chunks, 4U);
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_TRUE(eventually([&] { return client.tier("host").used_bytes == 0; }));
  client.store(chain);
  EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuDemotion, HostMemoryThatOnlyStagesBringsChunksThere) {
  auto with = options(8);
  with.host += "staging_only = true\n";
  with.disk_bytes = 64 * mebibyte;
  with.disk += "admission = \"always\"\n";
  daemon_under_test daemon(with);
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto region = registered(client);
  auto chain = chain_of(1, 4);
  client.store(chain);
  ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_disk).found_chunks == 4; }));
  auto moved = move(client, chain, tier_kind::gpu);
  ASSERT_TRUE(moved) << moved.error().text;
  EXPECT_EQ(moved->moved.chunks, 4U);
  EXPECT_EQ(load(client, region, chain), 4 * object_bytes);
  EXPECT_TRUE(eventually([&] { return client.tier("host").objects == 0; }));
  EXPECT_EQ(move(client, chain, tier_kind::host).error().code, errc::unsupported);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuDemotion, tier_devices(), device_name);

TEST(GpuDemotionFault, ALostDeviceLosesWhatItGivesBackAndNothingElse) {
  SKIP_ON_REAL_DRIVER();
  if (test::sanitized("thread"))
    GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  gpu_daemon::faults("lose reads"); // nothing is read from the device before something is given back
  engine_memory mine(device_kind::cuda_handle, region_objects * object_bytes);
  auto with =
      gpu_daemon::options_of("deadline = \"1s\"\ntier_bytes = " + std::to_string(4 * (object_bytes + 4096)) +
                             "\ntier_device = \"" + mine.shared().device + "\"\n");
  with.disk = "allocator = \"free_list\"\n";
  daemon_under_test daemon(with);
  tester client(daemon.socket());
  auto region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  ASSERT_TRUE(eventually([&] { return client.tier("gpu").notice.empty(); }));
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  auto move = [&](const std::vector<digest>& what) {
    return client->admin().move({.in = client.space(), .what = client::prefix::of_digests(what)},
                                tier_kind::gpu, patiently());
  };
  client.store(chain);
  client.store(other);
  auto first = move(chain);
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_EQ(first->moved.chunks, 4U);
  auto gone = client->admin().evict(
      {.in = client.space(), .what = client::prefix::of_digests(chain), .tiers = on_host}, patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  auto second = move(other);
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_EQ(second->moved.chunks, 0U);
  EXPECT_EQ(second->failed.chunks, 4U);
  EXPECT_EQ(device_of(client).state, "degraded");
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.load_and_check(other), 4U);
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
  std::filesystem::remove(gpu_daemon::script());
}

} // namespace
} // namespace terrace::e2e
