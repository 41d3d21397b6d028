// Loads that the process of a GPU reads from the disk itself, on the simulated driver and cuFile.
#include "gpu_daemon.hpp"
#include "tests/support/scrape.hpp"

#include <fcntl.h>

#include <csignal>

namespace terrace::e2e {
namespace {

constexpr auto from_disk = static_cast<size_t>(tier_kind::disk);
constexpr size_t lost_object = 3;

/// Its disk tier has joined: what is stored goes there.
struct disk_daemon : daemon_under_test {
  explicit disk_daemon(const daemon_options& options) : daemon_under_test(options) {
    EXPECT_TRUE(await_log("the disk tier of group default joined"));
  }
};

class GpuDirectDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_ON_REAL_DRIVER();
    if (test::sanitized("thread"))
      GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
    if (!TERRACE_CUDA_KERNELS)
      GTEST_SKIP() << "built without the toolkit, so nothing is verified on a device";
    gpu_daemon::faults("");
    memory_.emplace(device_kind::cuda_handle, region_objects * object_bytes);
  }
  void TearDown() override { std::filesystem::remove(gpu_daemon::script()); }

  /// Each object is a batch: a slot has 2 MiB.
  daemon_options options(const std::string& gpu = "deadline = \"20s\"\n", bool library = true) {
    auto made = gpu_daemon::options_of("direct_bytes = \"8MiB\"\n" + gpu);
    made.disk_bytes = 96 * mebibyte;
    made.host_bytes = 80 * mebibyte; // a window has an eighth: the region's objects
    made.metrics = "127.0.0.1:" + std::to_string(port_);
    if (library)
      made.before_exec = [before = std::move(made.before_exec)] {
        before();
        test::find_cufile();
      };
    return made;
  }
  client::registered_region registered(tester& by) {
    auto region = by->register_device_region(memory_->shared(), patiently());
    if (!region)
      throw std::runtime_error(region.error().text);
    return std::move(*region);
  }
  static void evict(tester& by, const std::vector<digest>& chain, uint32_t tiers) {
    auto gone =
        by->evict({.in = by.space(), .what = client::prefix::of_digests(chain), .tiers = tiers}, patiently());
    EXPECT_TRUE(gone) << gone.error().text;
  }
  static void only_on_disk(tester& by, const std::vector<digest>& chain) {
    by.store(chain);
    ASSERT_TRUE(eventually([&] { return by.lookup(chain, false, on_disk).found_chunks == chain.size(); }));
    ASSERT_TRUE(eventually([&] {
      evict(by, chain, on_host); // what is being written stays
      return by.lookup(chain, false, on_host).found_chunks == 0;
    }));
  }
  client::ticket<client::load_result> begin_load(tester& by, const client::registered_region& region,
                                                 const std::vector<digest>& chain) {
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto request = by.load_of(chain);
    runs_ = interleaved(chain.size());
    request.region = &region;
    request.runs = runs_;
    return by->submit_load(request, patiently()).value();
  }
  /// Loads into the region and compares every byte.
  client::load_result load(tester& by, const client::registered_region& region,
                           const std::vector<digest>& chain) {
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto loaded = load_into(by, region, chain, interleaved(chain.size()));
    EXPECT_TRUE(loaded) << loaded.error().text;
    if (!loaded)
      return {};
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    EXPECT_TRUE(memory_->read() == laid_out(chain, interleaved(chain.size())));
    return *loaded;
  }
  /// The first load from a disk passes host memory, and has the library and the file opened.
  void try_disk(tester& by, const client::registered_region& region) {
    auto chain = chain_of(900 + ++tried_, 1);
    only_on_disk(by, chain);
    load(by, region, chain);
    ASSERT_TRUE(eventually([&] { return device_of(by).disk_reads != "not tried"; }));
  }
  double counted(const std::string& name, tester& by) const {
    return test::number_behind(test::scrape(port_),
                               "terrace_device_" + name + "{device=\"" + device_of(by).device + "\"}");
  }
  /// Inverts a byte of the object on disk; `at` is counted from its header block.
  static void damage(const daemon_under_test& daemon, const digest& chunk, uint64_t at) {
    unique_fd fd(::open((daemon.state() + "/terrace.extents").c_str(), O_RDWR | O_CLOEXEC));
    std::vector<uint8_t> content(object_bytes), block(mebibyte + 4096);
    fill_content(chunk, content);
    for (uint64_t offset = 0; offset < 96 * mebibyte; offset += 4096) {
      ASSERT_GT(::pread(fd.get(), block.data(), 64, static_cast<off_t>(offset)), 0);
      if (std::memcmp(block.data(), content.data(), 64) != 0)
        continue;
      auto place = static_cast<off_t>(offset - 4096 + at);
      uint8_t byte = 0;
      ASSERT_EQ(::pread(fd.get(), &byte, 1, place), 1);
      byte = static_cast<uint8_t>(~byte);
      ASSERT_EQ(::pwrite(fd.get(), &byte, 1, place), 1);
      ASSERT_EQ(::fsync(fd.get()), 0);
      return;
    }
    FAIL() << "the object is not in the file";
  }

  uint16_t port_ = test::free_port();
  std::optional<engine_memory> memory_;
  std::vector<client::run> runs_;
  uint64_t tried_ = 0;
};

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
  // Its middle comes into host memory.
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
  // What is behind the part in host memory is in its window, which is loaded as a whole.
  EXPECT_GE(device_of(client).disk_bytes, 3 * object_bytes);
  EXPECT_LE(device_of(client).disk_bytes, 6 * object_bytes);
  EXPECT_EQ(loaded->bytes_by_tier.at(from_disk) +
                loaded->bytes_by_tier.at(static_cast<size_t>(tier_kind::host)),
            8 * object_bytes);
}

TEST_F(GpuDirectDisk, WrongBytesAreNeitherServedNorKept) {
  // In the header, in the payload, and at its end.
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

TEST_F(GpuDirectDisk, AWayThatFailsAgainAndAgainIsGivenUp) {
  disk_daemon daemon(options());
  tester client(daemon.socket());
  auto region = registered(client);
  try_disk(client, region);
  for (uint64_t i = 0; i < 16; ++i) {
    auto chain = chain_of(100 + i, 1);
    only_on_disk(client, chain);
    damage(daemon, chain[0], 4096);
    EXPECT_EQ(device_of(client).disk_reads, "yes");
    auto loaded = load_into(client, region, chain, interleaved(1));
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->delivered_chunks, 0U);
  }
  EXPECT_TRUE(device_of(client).disk_reads.starts_with("no: it failed 16 times"))
      << device_of(client).disk_reads;
  auto chain = chain_of(1, 4);
  only_on_disk(client, chain);
  load(client, region, chain);
  EXPECT_EQ(device_of(client).disk_bytes, 0U);
  EXPECT_EQ(device_of(client).state, "ready");
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
    auto with = options(isolated ? "" : "direct_disk = \"off\"\n");
    with.isolated = isolated;
    disk_daemon daemon(with);
    tester client(daemon.socket());
    auto region = registered(client);
    auto chain = chain_of(1, 4);
    only_on_disk(client, chain);
    load(client, region, chain);
    EXPECT_EQ(device_of(client).disk_reads, isolated ? "not tried" : "off");
    EXPECT_EQ(device_of(client).disk_bytes, 0U);
  }
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
    auto next = chain_of(2, 8);
    only_on_disk(client, next);
    auto before = device_of(client).disk_bytes;
    load(client, region, next);
    EXPECT_EQ(device_of(client).disk_bytes, before + 8 * object_bytes) << "the next one is read so again";
  }
}

// ---- processes that end ----

TEST_F(GpuDirectDisk, AReadThatHangsEndsTheProcessAndNothingElse) {
  gpu_daemon::faults("hang cuFileRead+2");
  disk_daemon daemon(options("deadline = \"2s\"\n"));
  tester client(daemon.socket()), other(daemon.socket(), "other");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  auto lost = load_into(client, region, chain, interleaved(8));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
  EXPECT_TRUE(client->unregister(std::move(region), patiently()));
  EXPECT_EQ(device_of(other).state, "degraded");
  EXPECT_TRUE(eventually([&] { return other.tier("disk").leased_objects == 0; }));
  EXPECT_EQ(other.load_and_check(chain), 8U);
  gpu_daemon::faults("");
  region = registered(client);
  try_disk(client, region);
  auto next = chain_of(2, 4);
  only_on_disk(client, next);
  auto before = device_of(client).disk_bytes;
  load(client, region, next);
  EXPECT_EQ(device_of(client).disk_bytes, before + 4 * object_bytes);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDirectDisk, WhatAProcessReadsIsHeldUntilItHasEnded) {
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 8; }));
  evict(witness, chain, on_disk);
  EXPECT_EQ(witness.tier("disk").leased_objects, 8U) << "their extents stay";
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto loaded = client->wait(loading, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
  EXPECT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 0; }));
  EXPECT_TRUE(client->unregister(std::move(region), patiently()));
  region = registered(client);
  try_disk(client, region);
  auto next = chain_of(2, 8);
  only_on_disk(client, next);
  auto before = device_of(client).disk_bytes;
  load(client, region, next);
  EXPECT_EQ(device_of(client).disk_bytes, before + 8 * object_bytes);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(GpuDirectDisk, NothingTakesTheExtentsThatAreRead) {
  disk_daemon daemon(options());
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  try_disk(client, region);
  auto chain = chain_of(1, 8);
  only_on_disk(client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("disk").leased_objects == 8; }));
  for (uint64_t seed = 10; seed < 30; ++seed) // more than the disk has
    witness.store(chain_of(seed, 8));
  EXPECT_FALSE(loading.ready());
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  auto loaded = client->wait(loading, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 8U);
  EXPECT_TRUE(memory_->read() == laid_out(chain, runs_));
  EXPECT_EQ(device_of(witness).disk_bytes, 8 * object_bytes);
}

TEST_F(GpuDirectDisk, AClientMayDieMeanwhile) {
  disk_daemon daemon(options());
  tester witness(daemon.socket(), "witness");
  auto keeps = registered(witness); // the process
  std::optional<tester> client(std::in_place, daemon.socket(), "victim");
  std::optional<client::registered_region> region(registered(*client));
  try_disk(*client, *region);
  auto chain = chain_of(1, 8);
  only_on_disk(*client, chain);
  pid_t process = device_of(witness).pid;
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
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
