// Loads that the process of a GPU reads from the disk itself, on the simulated driver and cuFile.
#include "client/layer_ring.hpp"

#include "gpu_disk_fixture.hpp"
#include "tests/support/denied_calls.hpp"

namespace terrace::e2e {
namespace {

constexpr size_t lost_object = 3;

class GpuDirectDisk : public gpu_disk_fixture {};

TEST_F(GpuDirectDisk, WhatOnlyTheDiskHasIsReadByTheDeviceAndTheSecondTimeByHostMemory) {
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  EXPECT_EQ(device_of(client).disk_reads, "not tried");
  try_disk(client, region);
  EXPECT_EQ(device_of(client).disk_reads, "yes");
  EXPECT_EQ(device_of(client).disk_bytes, 0U);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  auto loaded = load(client, region, chain);
  EXPECT_EQ(loaded.bytes_by_tier.at(from_disk), 8 * object_bytes);
  EXPECT_EQ(device_of(client).disk_bytes, 8 * object_bytes);
  EXPECT_EQ(counted("disk_bytes_total", client), static_cast<double>(8 * object_bytes));
  EXPECT_EQ(counted("disk_failures_total", client), 0);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U) << "host memory keeps nothing of it";
  loaded = load(client, region, chain);
  EXPECT_EQ(loaded.bytes_by_tier.at(from_disk), 8 * object_bytes);
  EXPECT_EQ(device_of(client).disk_bytes, 8 * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 8U);
  EXPECT_TRUE(daemon.check());
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDirectDisk, ALoadTakesEachPartFromWhereItIs) {
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  // The middle of the chain comes into host memory.
  auto request = client.load_of(chain, {3, 2});
  ASSERT_TRUE(client->load(request, patiently()));
  auto held = client.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 8U);
  memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
  auto by_lease = client.load_of(chain);
  runs_ = interleaved(8);
  by_lease.region = &region;
  by_lease.runs = runs_;
  by_lease.lease = held.held.id();
  auto loaded = client->load(by_lease, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 8U);
  EXPECT_TRUE(memory_->read() == laid_out(chain, interleaved(8)));
  // Chunks after the part in host memory are in its window, which is loaded as a whole.
  EXPECT_GE(device_of(client).disk_bytes, 3 * object_bytes);
  EXPECT_LE(device_of(client).disk_bytes, 6 * object_bytes);
  EXPECT_EQ(loaded->bytes_by_tier.at(from_disk) +
                loaded->bytes_by_tier.at(static_cast<size_t>(tier_kind::host)),
            8 * object_bytes);
}

TEST_F(GpuDirectDisk, WrongBytesAreNeitherServedNorKept) {
  // Damages the header, the payload, and its end.
  for (uint64_t at : {uint64_t{40}, uint64_t{4096 + 12'345}, 4096 + object_bytes - 1}) {
    SCOPED_TRACE(at);
    disk_daemon daemon(options());
    tester client(daemon.socket());
    auto region = registered(client);
    try_disk(client, region);
    auto chain = chain_of(1, 8);
    only_on_disk(client, chain);
    damage(daemon, chain[lost_object], at);
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto loaded = load_into(client, region, chain, interleaved(8));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, lost_object);
    auto found = memory_->read(), whole = laid_out(chain, interleaved(8));
    for (uint64_t piece = 0; piece < pieces; ++piece)
      for (size_t i = 0; i < 8; ++i) {
        auto place = static_cast<ptrdiff_t>((piece * region_objects + i) * piece_bytes);
        bool there =
            std::equal(found.begin() + place, found.begin() + place + piece_bytes, whole.begin() + place);
        if (i < lost_object) {
          ASSERT_TRUE(there) << i << ", " << piece;
        } else if (i == lost_object) {
          ASSERT_EQ(found.at(static_cast<size_t>(place)), 0x5a) << "nothing of it was copied";
        }
      }
    EXPECT_TRUE(eventually([&] { return client.lookup(chain, false, on_disk).found_chunks == lost_object; }))
        << "it is dropped";
    EXPECT_EQ(counted("disk_failures_total", client), 1);
    EXPECT_NE(client.tier("disk").notice.find("damaged"), std::string::npos) << client.tier("disk").notice;
    EXPECT_EQ(client.tier("disk").leased_objects, 0U);
  }
}

/// What the library has read cannot be verified.
TEST_F(GpuDirectDisk, AWayThatFailsAgainAndAgainIsGivenUp) {
  gpu_daemon::faults("refuse cuLaunchKernel*16");
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  for (uint64_t i = 0; i < 16; ++i) {
    auto chain = chain_of(100 + i, 1);
    only_on_disk(client, chain);
    EXPECT_EQ(device_of(client).disk_reads, "yes");
    load(client, region, chain);
  }
  EXPECT_TRUE(device_of(client).disk_reads.starts_with("no: it fails too often: cuLaunchKernel"))
      << device_of(client).disk_reads;
  auto chain = chain_of(1, 4);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(device_of(client).disk_bytes, 0U);
  EXPECT_EQ(device_of(client).state, "ready");
}

/// A load of one pool whose generation says that all of it is there. It is written after the part that was
/// read directly, or after host memory has brought the last object instead.
TEST_F(GpuDirectDisk, TheGenerationOfALoadComesOnceAndBehindItsBytes) {
  for (const char* fault : {"", "refuse cuFileRead+3"}) {
    SCOPED_TRACE(fault);
    gpu_daemon::faults(fault);
    disk_daemon daemon(options());
    tester client(daemon.socket());
    auto region = registered(client);
    try_disk(client, region);
    auto page = client::region::create("generations", client::layer_ring::bytes_for(3, 1)).value();
    auto counters = client->register_generations(page, memory_->shared().device, patiently()).value();
    auto ring = client::layer_ring::make(page, counters, {.loads = 3, .layers = 1}).value();
    auto chain = chain_of(1, 4);
    only_on_disk(client, chain);
    auto layers = ring->begin();
    ASSERT_TRUE(layers) << layers.error().text;
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    runs_ = interleaved(4);
    auto request = client.load_of(chain);
    request.region = &region;
    request.runs = runs_;
    request.layers = *layers;
    auto loading = client->async().load(request, patiently());
    ASSERT_TRUE(loading) << loading.error().text;
    EXPECT_TRUE(ring->wait(*layers, 0, patiently()));
    EXPECT_TRUE(memory_->read() == laid_out(chain, runs_)) << "it was told before the bytes were there";
    auto loaded = ring->end(*layers, loading->wait(patiently()));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, 4U);
    EXPECT_EQ(device_of(client).disk_bytes, (*fault == '\0' ? 4 : 3) * object_bytes);
    EXPECT_EQ(counted("generations_total", client), 1);
  }
}

TEST_F(GpuDirectDisk, DamagedObjectsAreNoReasonToGiveItUp) {
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  for (uint64_t i = 0; i < 17; ++i) {
    auto chain = chain_of(100 + i, 1);
    only_on_disk(client, chain);
    damage(daemon, chain[0], 4096);
    auto loaded = load_into(client, region, chain, interleaved(1));
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->delivered_chunks, 0U);
  }
  EXPECT_EQ(counted("disk_failures_total", client), 17);
  EXPECT_EQ(device_of(client).disk_reads, "yes");
  auto chain = chain_of(1, 4);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(device_of(client).disk_bytes, 4 * object_bytes);
}

TEST_F(GpuDirectDisk, WhatIsReadWhileItIsGivenUpIsDelivered) {
  make_hold();
  gpu_daemon::faults("refuse cuFileRead*16\nhold cuFileRead+15\n");
  disk_daemon daemon(options());
  tester client(daemon.socket()), other(daemon.socket(), "other");
  auto region = registered(client);
  try_disk(client, region);
  for (uint64_t i = 0; i < 15; ++i) {
    auto chain = chain_of(100 + i, 1);
    only_on_disk(client, chain);
    load(client, region, chain);
  }
  engine_memory second(device_kind::cuda_handle, region_objects * object_bytes);
  auto others = other->register_device_region(second.shared(), patiently());
  ASSERT_TRUE(others) << others.error().text;
  auto kept = chain_of(1, 1), fails = chain_of(2, 1);
  only_on_disk(client, kept);
  only_on_disk(client, fails);
  auto loading = begin_load(client, region, kept);
  ASSERT_TRUE(eventually([] { return holds(); }));
  auto loaded = load_into(other, *others, fails, interleaved(1));
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 1U);
  EXPECT_TRUE(device_of(other).disk_reads.starts_with("no: it fails too often: cuFileRead"))
      << device_of(other).disk_reads;
  end_hold();
  expect_loaded(loading, kept);
  EXPECT_EQ(device_of(client).disk_bytes, object_bytes);
  EXPECT_EQ(device_of(client).state, "ready");
}

TEST_F(GpuDirectDisk, WhatWasClearedIsNotDelivered) {
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  auto held = client.lookup(chain, true);
  ASSERT_EQ(held.found_chunks, 8U);
  ASSERT_TRUE(witness->admin().clear(nullptr, patiently()));
  auto loaded = client->load(load_under(client, held.held, region, chain, interleaved(8)), patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
}

TEST_F(GpuDirectDisk, WhatIsClearedWhileItIsReadIsNotDelivered) {
  make_hold();
  gpu_daemon::faults("hold cuFileRead+3");
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([] { return holds(); }));
  ASSERT_TRUE(witness->admin().clear(nullptr, patiently()));
  end_hold();
  auto loaded = loading.wait(patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 0U);
}

TEST_F(GpuDirectDisk, WhereItCannotBeHostMemoryIsPassed) {
  struct wanted {
    const char* fault;
    const char* told;
    bool library;
  };
  for (const wanted& each :
       {wanted{"", "no: no cuFile: libcufile.so.0", false},
        wanted{"refuse cuFileDriverOpen", "no: cuFileDriverOpen: error 5030 of cuFile", true},
        wanted{"refuse cuFileSetParameterBool", "no: cuFile may read through host memory", true},
        wanted{"refuse cuFileBufRegister", "no: cuFileBufRegister: error 5030 of cuFile", true},
        wanted{"refuse cuModuleGetFunction+1", "no: cuModuleGetFunction", true},
        wanted{"refuse cuFileHandleRegister", "not all: ", true}}) {
    SCOPED_TRACE(std::string(each.fault) + each.told);
    gpu_daemon::faults(each.fault);
    disk_daemon daemon(options("deadline = \"20s\"\n", each.library));
    tester client(daemon.socket());
    auto region = registered(client);
    try_disk(client, region);
    EXPECT_TRUE(device_of(client).disk_reads.starts_with(each.told)) << device_of(client).disk_reads;
    auto chain = chain_of(1, 8);
    only_on_disk(client, chain);
    auto loaded = load(client, region, chain);
    EXPECT_EQ(loaded.bytes_by_tier.at(from_disk), 8 * object_bytes);
    EXPECT_EQ(device_of(client).disk_bytes, 0U);
    EXPECT_EQ(device_of(client).state, "ready");
    EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 8U);
    EXPECT_EQ(daemon.terminate(), 0);
  }
}

TEST_F(GpuDirectDisk, IsForGroupsThatTheConfigurationNames) {
  for (bool isolated : {false, true}) {
    SCOPED_TRACE(isolated);
    auto with = options("", true, isolated);
    with.isolated = isolated;
    disk_daemon daemon(with);
    tester client(daemon.socket());
    auto region = registered(client);
    auto chain = chain_of(1, 4);
    only_on_disk(client, chain);
    load(client, region, chain);
    EXPECT_EQ(device_of(client).disk_reads, isolated ? "not tried" : "off");
    EXPECT_EQ(device_of(client).disk_bytes, 0U);
    EXPECT_EQ(openings_of_disk(daemon), 1U) << "no file is opened for it";
  }
  disk_daemon daemon(options());
  EXPECT_EQ(openings_of_disk(daemon), 2U);
}

TEST_F(GpuDirectDisk, IsOffUnlessTheConfigurationSaysOtherwise) {
  auto with = gpu_daemon::options_of("");
  with.disk_bytes = 96 * mebibyte;
  disk_daemon daemon(with);
  tester client(daemon.socket());
  auto region = registered(client);
  EXPECT_EQ(device_of(client).disk_reads, "off");
  EXPECT_EQ(openings_of_disk(daemon), 1U);
}

TEST_F(GpuDirectDisk, AFileThatIsRefusedIsNotAskedForAgain) {
  gpu_daemon::faults("refuse cuFileHandleRegister");
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  EXPECT_TRUE(device_of(client).disk_reads.starts_with("not all: ")) << device_of(client).disk_reads;
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  auto before = client.tier("disk").hits;
  load(client, region, chain);
  EXPECT_EQ(client.tier("disk").hits, before + 8) << "its tier is asked once, by the way through host memory";
}

TEST_F(GpuDirectDisk, AFileThatCannotBeOpenedForItIsToldOfOnce) {
  auto with = options();
  with.before_exec = [before = std::move(with.before_exec)] {
    before();
    if (!test::deny_exactly(SYS_openat, EMFILE, 2, O_RDONLY | O_DIRECT | O_CLOEXEC))
      ::_exit(98);
  };
  disk_daemon daemon(with);
  const std::string why =
      daemon.state() + "/terrace.extents: opening it once more, for GPUs: Too many open files";
  ASSERT_TRUE(daemon.await_log(why));
  tester client(daemon.socket());
  auto region = registered(client);
  EXPECT_EQ(device_of(client).disk_reads, "not all: " + why);
  EXPECT_EQ(client.tier("disk").notice, "GPUs do not read it themselves: " + why);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(device_of(client).disk_bytes, 0U);
  auto log = daemon.log();
  EXPECT_EQ(log.find(why), log.rfind(why)) << log;
}

TEST_F(GpuDirectDisk, EachLoadIsOneUseAndOneHit) {
  // The first load goes through host memory, because nothing is open yet. The device reads the second; the
  // third fails there in the middle, and the rest is read through host memory.
  gpu_daemon::faults("refuse cuFileRead+11");
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  for (uint64_t seed : {1, 2, 3}) {
    auto chain = chain_of(seed, 8);
    only_on_disk(client, chain);
    auto before = uses();
    auto hits = client.tier("disk").hits, misses = client.tier("disk").misses;
    load(client, region, chain);
    EXPECT_TRUE(daemon.check()); // the daemon's policy has seen what was before
    EXPECT_EQ(uses(), before + 8) << seed;
    EXPECT_EQ(client.tier("disk").hits, hits + 8) << seed;
    EXPECT_EQ(client.tier("disk").misses, misses) << seed;
    ASSERT_TRUE(eventually([&] { return is_settled(device_of(client).disk_reads); }));
  }
  EXPECT_GE(device_of(client).disk_bytes, 8 * object_bytes);
  EXPECT_EQ(counted("disk_failures_total", client), 1);
}

TEST_F(GpuDirectDisk, WhatARequestDoesNotReadHostMemoryReads) {
  for (const char* fault : {"refuse cuFileRead+3", "halve cuFileRead+3"}) {
    SCOPED_TRACE(fault);
    gpu_daemon::faults(fault);
    disk_daemon daemon(options());
    tester client(daemon.socket());
    auto region = registered(client);
    try_disk(client, region);
    auto chain = chain_of(1, 8);
    only_on_disk(client, chain);
    load(client, region, chain);
    bool fails = std::string_view(fault).starts_with("refuse");
    EXPECT_EQ(counted("disk_failures_total", client), fails ? 1 : 0);
    EXPECT_EQ(device_of(client).disk_bytes == 8 * object_bytes, !fails);
    expect_direct(client, region, chain_of(2, 8));
  }
}

} // namespace
} // namespace terrace::e2e
