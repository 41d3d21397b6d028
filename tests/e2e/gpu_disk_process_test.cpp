// GPU processes that read the disk themselves, and hang, die, or are given up.
#include "gpu_disk_fixture.hpp"
#include "tests/support/process_memory.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

class GpuDiskProcess : public gpu_disk_fixture {
 protected:
  /// Kills the process and gives back its region.
  static void kill_process(tester& by, client::registered_region& region) {
    ASSERT_EQ(::kill(device_of(by).pid, SIGKILL), 0);
    EXPECT_TRUE(eventually([&] { return device_of(by).state == "degraded"; }));
    EXPECT_TRUE(region.unregister(patiently()));
  }
};

TEST_F(GpuDiskProcess, AReadThatHangsIsGivenUpAndNothingElse) {
  gpu_daemon::faults("hang cuFileRead+2");
  disk_daemon daemon(options("deadline = \"6s\"\n"));
  tester client(daemon.socket()), other(daemon.socket(), "other");
  auto region = registered(client);
  try_disk(client, region);
  pid_t process = device_of(client).pid;
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(counted("disk_late_total", client), 1);
  EXPECT_EQ(counted("disk_late_slots", client), 1);
  EXPECT_EQ(counted("disk_failures_total", client), 1);
  EXPECT_TRUE(eventually([&] { return other.tier("disk").leased_objects == 0; })) << "its extents are free";
  EXPECT_EQ(device_of(client).disk_reads, "yes");
  expect_direct(client, region, chain_of(2, 8));
  EXPECT_EQ(counted("disk_late_slots", client), 1);
  EXPECT_EQ(device_of(other).state, "ready");
  EXPECT_EQ(device_of(other).pid, process);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDiskProcess, WhileNoReadEndsNoneIsBegun) {
  make_hold();
  gpu_daemon::faults("hold cuFileRead*4");
  disk_daemon daemon(options("deadline = \"6s\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  pid_t process = device_of(client).pid;
  auto chain = chain_of(1, 8), next = chain_of(2, 8);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(counted("disk_late_slots", client), 4);
  EXPECT_EQ(counted("reads_disks", client), 0);
  EXPECT_TRUE(device_of(client).disk_reads.starts_with("no: none of the 4 reads"))
      << device_of(client).disk_reads;
  only_on_disk(client, next);
  auto before = client.tier("disk").hits;
  load(client, region, next);
  EXPECT_EQ(client.tier("disk").hits, before + 8) << "its tier is asked once, by the way through host memory";
  EXPECT_EQ(device_of(client).disk_bytes, 0U);
  end_hold();
  EXPECT_TRUE(eventually([&] { return counted("disk_late_slots", client) == 0; }));
  EXPECT_EQ(device_of(client).disk_reads, "yes");
  EXPECT_EQ(counted("reads_disks", client), 1);
  EXPECT_EQ(device_of(client).disk_bytes, 0U) << "what came late was delivered";
  expect_direct(client, region, chain_of(3, 8));
  EXPECT_EQ(device_of(client).pid, process);
  EXPECT_EQ(daemon.terminate(), 0);
}

/// The process could not be killed while the kernel reads for it, and the next one would wait for its end.
TEST_F(GpuDiskProcess, ALateReadKeepsTheProcess) {
  make_hold();
  gpu_daemon::faults("hold cuFileRead");
  disk_daemon daemon(options("deadline = \"6s\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  pid_t process = device_of(client).pid;
  auto chain = chain_of(1, 2);
  only_on_disk(client, chain);
  load(client, region, chain);
  ASSERT_EQ(counted("disk_late_slots", client), 1);
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  EXPECT_EQ(device_of(client).pid, process);
  EXPECT_EQ(device_of(client).starts, 1U);
  expect_direct(client, region, chain_of(2, 4));
  EXPECT_TRUE(region.unregister(patiently()));
  EXPECT_EQ(device_of(client).pid, process);
  end_hold();
  EXPECT_TRUE(eventually([&] { return device_of(client).pid == 0; })) << "nothing keeps it any more";
  EXPECT_EQ(device_of(client).state, "idle");
}

TEST_F(GpuDiskProcess, WhatAProcessReadsIsHeldUntilItHasEnded) {
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_TRUE(test::suspend(process));
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 8; }));
  evict(witness, chain, on_disk);
  EXPECT_EQ(witness.tier("disk").leased_objects, 8U) << "their extents stay";
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto loaded = loading.wait(patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
  EXPECT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 0; }));
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  try_disk(client, region);
  expect_direct(client, region, chain_of(2, 8));
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDiskProcess, NothingTakesTheExtentsThatAreRead) {
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_TRUE(test::suspend(process));
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 8; }));
  for (uint64_t seed = 10; seed < 30; ++seed) // more than the disk holds
    witness.store(chain_of(seed, 8));
  EXPECT_FALSE(loading.ready());
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  auto loaded = loading.wait(patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 8U);
  EXPECT_TRUE(memory_->read() == laid_out(chain, runs_));
  EXPECT_EQ(device_of(witness).disk_bytes, 8 * object_bytes);
}

/// Whatever the process did at that moment counts, because the library has threads and memory of its own in
/// it.
TEST_F(GpuDiskProcess, AWayInWhichTwoWereLostIsGivenUp) {
  disk_daemon daemon(options());
  tester client(daemon.socket());
  for (uint64_t seed : {1, 2}) {
    auto region = registered(client);
    try_disk(client, region);
    EXPECT_EQ(device_of(client).disk_reads, "yes");
    expect_direct(client, region, chain_of(seed, 2));
    kill_process(client, region);
  }
  auto region = registered(client);
  EXPECT_TRUE(device_of(client).disk_reads.starts_with("no: 2 of its processes"))
      << device_of(client).disk_reads;
  auto before = device_of(client).disk_bytes;
  for (uint64_t seed : {3, 4}) {
    auto chain = chain_of(seed, 8);
    only_on_disk(client, chain);
    load(client, region, chain);
  }
  EXPECT_EQ(device_of(client).disk_bytes, before);
  EXPECT_EQ(device_of(client).state, "ready");
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDiskProcess, ProcessesInWhichTheLibraryWasNotOpenAreNotHeldAgainstIt) {
  gpu_daemon::faults("refuse cuFileDriverOpen");
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region); // the way is refused
  kill_process(client, region);
  gpu_daemon::faults("");
  for (int i = 0; i < 2; ++i) {
    region = registered(client);
    EXPECT_EQ(device_of(client).disk_reads, "not tried");
    kill_process(client, region);
  }
  region = registered(client);
  try_disk(client, region);
  expect_direct(client, region, chain_of(1, 4));
}

TEST_F(GpuDiskProcess, FailuresNowAndThenAreForgiven) {
  gpu_daemon::faults("refuse cuFileRead*15\nhang cuFileRead+143\n");
  disk_daemon daemon(options("deadline = \"6s\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  for (uint64_t i = 0; i < 15; ++i) {
    auto chain = chain_of(100 + i, 1);
    only_on_disk(client, chain);
    load(client, region, chain);
  }
  for (uint64_t i = 0; i < 16; ++i)
    expect_direct(client, region, chain_of(200 + i, 8));
  auto late = chain_of(1, 1);
  only_on_disk(client, late);
  load(client, region, late);
  EXPECT_EQ(counted("disk_late_total", client), 1);
  EXPECT_EQ(counted("disk_failures_total", client), 16);
  EXPECT_EQ(device_of(client).disk_reads, "yes") << "which 16 at once would have ended";
  expect_direct(client, region, chain_of(2, 4));
}

/// Begins another daemon's deadline, and lets it pass.
void pass_deadline(daemon_options with, const engine_memory& memory) {
  gpu_daemon::faults("hang copies");
  with.metrics.clear();
  disk_daemon other(with);
  tester client(other.socket());
  auto region = client->register_device_region(memory.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto chain = chain_of(1, 1);
  client.store(chain);
  EXPECT_FALSE(load_into(client, *region, chain, interleaved(1)));
  EXPECT_EQ(device_of(client).state, "degraded");
  EXPECT_TRUE(region->unregister(patiently()));
  EXPECT_TRUE(eventually([&] { return client.tier("host").leased_objects == 0; })) << "the process has ended";
}

TEST_F(GpuDiskProcess, TheLibraryMayTakeLongerThanTheDeadline) {
  auto with = options("deadline = \"2s\"\n");
  for (const char* slow : {"hold cuFileDriverOpen", "hold cuFileHandleRegister"}) {
    SCOPED_TRACE(slow);
    make_hold();
    gpu_daemon::faults(slow);
    disk_daemon daemon(with);
    tester client(daemon.socket());
    auto region = registered(client);
    auto chain = chain_of(1, 1);
    only_on_disk(client, chain);
    load(client, region, chain);
    ASSERT_TRUE(eventually([] { return holds(); }));
    EXPECT_EQ(device_of(client).disk_reads, "opening");
    pass_deadline(with, *memory_);
    EXPECT_EQ(device_of(client).state, "ready");
    EXPECT_EQ(device_of(client).starts, 1U);
    // Meanwhile loads go through host memory, and do not ask for more.
    auto next = chain_of(2, 8);
    only_on_disk(client, next);
    auto before = client.tier("disk").hits;
    load(client, region, next);
    EXPECT_EQ(client.tier("disk").hits, before + 8);
    end_hold();
    EXPECT_TRUE(eventually([&] { return device_of(client).disk_reads == "yes"; }))
        << device_of(client).disk_reads;
    auto last = chain_of(3, 8);
    only_on_disk(client, last);
    load(client, region, last);
    EXPECT_EQ(device_of(client).disk_bytes, 8 * object_bytes);
  }
}

/// One process refuses a file or takes long to open it; another one reads it.
TEST_F(GpuDiskProcess, EachGpuHasARecordOfItsOwn) {
  for (const char* fault : {"refuse cuFileHandleRegister", "hold cuFileHandleRegister"}) {
    SCOPED_TRACE(fault);
    make_hold();
    gpu_daemon::faults(fault);
    disk_daemon daemon(options());
    tester client(daemon.socket());
    auto region = registered(client);
    auto first = chain_of(1, 1);
    only_on_disk(client, first);
    load(client, region, first);
    const bool refuses = std::string_view(fault).starts_with("refuse");
    ASSERT_TRUE(eventually(
        [&] { return refuses ? device_of(client).disk_reads.starts_with("not all: ") : holds(); }));
    gpu_daemon::faults("");
    engine_memory second(device_kind::cuda_handle, region_objects * object_bytes, 1);
    auto there = client->register_device_region(second.shared(), patiently());
    ASSERT_TRUE(there) << there.error().text;
    auto on_second = [&] { return status_of(client, second); };
    EXPECT_EQ(on_second().disk_reads, "not tried");
    auto opens = chain_of(2, 1), chain = chain_of(3, 8);
    only_on_disk(client, opens);
    ASSERT_TRUE(load_into(client, *there, opens, interleaved(1)));
    EXPECT_TRUE(eventually([&] { return on_second().disk_reads == "yes"; })) << on_second().disk_reads;
    only_on_disk(client, chain);
    second.write(std::vector<uint8_t>(second.bytes(), 0x5a));
    ASSERT_TRUE(load_into(client, *there, chain, interleaved(8)));
    EXPECT_TRUE(second.read() == laid_out(chain, interleaved(8)));
    EXPECT_EQ(on_second().disk_bytes, 8 * object_bytes);
    EXPECT_EQ(status_of(client, *memory_).disk_bytes, 0U);
    end_hold();
  }
}

TEST_F(GpuDiskProcess, AClientMayDieMeanwhile) {
  disk_daemon daemon(options());
  tester witness(daemon.socket(), "witness");
  auto keeps = registered(witness); // keeps the process
  std::optional<tester> client(std::in_place, daemon.socket(), "victim");
  std::optional<client::registered_region> region(registered(*client));
  try_disk(*client, *region);
  auto chain = chain_of(1, 8);
  only_on_disk(*client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_TRUE(test::suspend(process));
  begin_load(*client, *region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 8; }));
  region.reset();
  client.reset();
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  EXPECT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 0; }));
  EXPECT_TRUE(eventually([&] { return device_of(witness).regions == 1; }));
  EXPECT_EQ(device_of(witness).pid, process);
  load(witness, keeps, chain);
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

} // namespace
} // namespace terrace::e2e
