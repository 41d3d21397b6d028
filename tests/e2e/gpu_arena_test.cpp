// Loads that the process of a device reads from host memory itself, on the host device and on the simulated
// driver.
#include "base/printable.hpp"
#include "gpu_daemon.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/scrape.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

constexpr uint64_t segment_bytes = 8 * mebibyte;
constexpr uint64_t objects_a_segment = 7; // each object has a header block

class GpuArena : public device_fixture {
 protected:
  void SetUp() override {
    device_fixture::SetUp();
    if (!IsSkipped())
      memory_.emplace(GetParam(), region_objects * object_bytes);
  }

  static daemon_options options(uint64_t segments, const std::string& gpu = "deadline = \"10s\"\n") {
    auto made = gpu_daemon::options_of(gpu);
    made.host_bytes = segments * segment_bytes;
    made.host = "segment_bytes = \"8MiB\"\n";
    return made;
  }
  client::registered_region registered(tester& by) {
    auto region = by->register_device_region(memory_->shared(), patiently());
    if (!region)
      throw std::runtime_error(region.error().text);
    return std::move(*region);
  }
  static bool pins(tester& by, uint64_t bytes) {
    return eventually([&] { return device_of(by).pinned_bytes == bytes; });
  }
  void expect_loaded(const std::vector<digest>& chain) {
    EXPECT_TRUE(memory_->read() == laid_out(chain, interleaved(chain.size())));
  }
  /// Loads into the region and compares every byte.
  void load(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto loaded = load_into(by, region, chain, interleaved(chain.size()));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    expect_loaded(chain);
  }
  client::ticket<client::load_result> begin_load(tester& by, const client::registered_region& region,
                                                 const std::vector<digest>& chain) {
    memory_->write(std::vector<uint8_t>(memory_->bytes(), 0x5a));
    auto request = by.load_of(chain);
    runs_ = interleaved(chain.size());
    request.region = &region;
    request.runs = runs_;
    return by->async().load(request, patiently()).value();
  }
  static void resize(daemon_under_test& daemon, uint64_t segments) {
    daemon.configure(options(segments));
    daemon.signal(SIGHUP);
    EXPECT_TRUE(daemon.await_log("has " + readable_bytes(segments * segment_bytes) + " of host memory"));
  }

  std::optional<engine_memory> memory_;
  std::vector<client::run> runs_;
};

TEST_P(GpuArena, LoadsAreReadFromItAndStoresPassStagingMemory) {
  auto with = options(4);
  auto port = test::free_port();
  with.metrics = "127.0.0.1:" + std::to_string(port);
  daemon_under_test daemon(with);
  tester client(daemon.socket());
  auto region = registered(client);
  ASSERT_TRUE(pins(client, 4 * segment_bytes));
  auto chain = chain_of(1, 8), other = chain_of(2, 4);
  client.store(chain);
  load(client, region, chain);
  auto shown = device_of(client);
  EXPECT_EQ(shown.direct_bytes, 8 * object_bytes);
  EXPECT_EQ(shown.staged_bytes, 0U);
  memory_->write(laid_out(other, interleaved(4)));
  ASSERT_TRUE(store_from(client, region, other, interleaved(4)));
  EXPECT_EQ(client.load_and_check(other), 4U);
  shown = device_of(client);
  EXPECT_EQ(shown.direct_bytes, 8 * object_bytes);
  EXPECT_EQ(shown.staged_bytes, 4 * object_bytes);
  auto scraped = test::scrape(port);
  auto metric = [&](const std::string& name) {
    return test::number_behind(scraped, name + "{device=\"" + shown.device + "\"}");
  };
  EXPECT_EQ(metric("terrace_device_pinned_bytes"), static_cast<double>(4 * segment_bytes));
  EXPECT_EQ(metric("terrace_device_direct_bytes_total"), static_cast<double>(8 * object_bytes));
  EXPECT_EQ(metric("terrace_device_staged_bytes_total"), static_cast<double>(4 * object_bytes));
  EXPECT_TRUE(region.unregister(patiently()));
  EXPECT_TRUE(pins(client, 0)) << "they end with the process";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(GpuArena, IsMappedForTheGroupsThatTheConfigurationSays) {
  struct wanted {
    const char* gpu;
    const char* host;
    bool isolated;
    bool mapped;
  };
  for (const wanted& each : {wanted{"map_arenas = \"off\"\n", "", false, false},
                             {"map_arenas = \"shared\"\n", "", true, false},
                             {"map_arenas = \"all\"\n", "", true, true},
                             {"map_arenas = \"all\"\n", "prefault = false\n", false, false}}) {
    SCOPED_TRACE(std::string(each.gpu) + each.host);
    auto with = options(4, each.gpu);
    with.host += each.host;
    with.isolated = each.isolated;
    daemon_under_test daemon(with);
    tester client(daemon.socket());
    auto region = registered(client);
    if (each.mapped) {
      ASSERT_TRUE(pins(client, 4 * segment_bytes));
    }
    auto chain = chain_of(1, 8);
    client.store(chain);
    load(client, region, chain);
    auto shown = device_of(client);
    EXPECT_EQ(shown.pinned_bytes, each.mapped ? 4 * segment_bytes : 0);
    EXPECT_EQ(shown.direct_bytes, each.mapped ? 8 * object_bytes : 0);
    EXPECT_EQ(shown.staged_bytes, each.mapped ? 0 : 8 * object_bytes);
  }
}

TEST_P(GpuArena, GrowsAndShrinksWhileItIsRead) {
  daemon_under_test daemon(options(2));
  tester client(daemon.socket());
  auto region = registered(client);
  ASSERT_TRUE(pins(client, 2 * segment_bytes));
  auto first = chain_of(1, 8);
  client.store(first);
  resize(daemon, 6);
  ASSERT_TRUE(pins(client, 6 * segment_bytes));
  auto second = chain_of(2, 8), third = chain_of(3, 8);
  client.store(second);
  client.store(third);
  for (const auto& chain : {first, second, third})
    load(client, region, chain);
  EXPECT_EQ(device_of(client).staged_bytes, 0U);
  resize(daemon, 1);
  EXPECT_TRUE(daemon.await_log("segment 1 was removed"));
  EXPECT_TRUE(pins(client, segment_bytes));
  EXPECT_TRUE(eventually([&] { return client.tier("host").leaving_bytes == 0; }));
  auto chain = chain_of(4, 4);
  client.store(chain);
  load(client, region, chain);
  EXPECT_EQ(device_of(client).staged_bytes, 0U);
}

TEST_P(GpuArena, ASegmentThatIsReadIsRemovedAfterwards) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  ASSERT_TRUE(pins(client, 4 * segment_bytes));
  auto chain = chain_of(1, 8);
  client.store(chain_of(2, 3 * objects_a_segment - 4)); // so that the chain is in several segments
  client.store(chain);
  pid_t process = device_of(witness).pid;
  ASSERT_TRUE(test::suspend(process));
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("host").leased_objects != 0; }));
  resize(daemon, 1);
  EXPECT_FALSE(loading.ready());
  EXPECT_EQ(device_of(witness).pinned_bytes, 4 * segment_bytes) << "nothing is forgotten meanwhile";
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  auto loaded = loading.wait(patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  // Objects that the load had not begun to read have left meanwhile.
  EXPECT_GT(loaded->delivered_chunks, 0U);
  chain.resize(loaded->delivered_chunks);
  expect_loaded(chain);
  EXPECT_EQ(device_of(witness).staged_bytes, 0U);
  EXPECT_TRUE(pins(witness, segment_bytes));
  EXPECT_TRUE(eventually([&] { return witness.tier("host").leaving_bytes == 0; }));
}

TEST_P(GpuArena, AProcessMayDieWhileItReads) {
  daemon_under_test daemon(options(4));
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto region = registered(client);
  ASSERT_TRUE(pins(client, 4 * segment_bytes));
  auto chain = chain_of(1, 8);
  client.store(chain);
  pid_t process = device_of(witness).pid;
  ASSERT_TRUE(test::suspend(process));
  auto loading = begin_load(client, region, chain);
  ASSERT_TRUE(eventually([&] { return witness.tier("host").leased_objects != 0; }));
  daemon.configure(options(1)); // its segments leave, too
  daemon.signal(SIGHUP);
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  auto loaded = loading.wait(patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
  EXPECT_TRUE(eventually([&] { return witness.tier("host").leased_objects == 0; })) << "nothing is held";
  EXPECT_TRUE(pins(witness, 0));
  EXPECT_TRUE(eventually([&] {
    auto host = witness.tier("host");
    return host.capacity_bytes == segment_bytes && host.leaving_bytes == 0;
  }));
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  ASSERT_TRUE(pins(client, segment_bytes)) << "the next one begins again";
  auto other = chain_of(2, 4);
  client.store(other);
  load(client, region, other);
  EXPECT_EQ(device_of(client).staged_bytes, 0U);
  EXPECT_EQ(daemon.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuArena, ::testing::Values(device_kind::host, device_kind::cuda_handle),
                         [](const auto& each) { return to_string(each.param); });

// ---- what a driver may do ----

class GpuArenaFault : public GpuArena {};

TEST_P(GpuArenaFault, WhatCannotBePinnedPassesStagingMemory) {
  SKIP_ON_REAL_DRIVER();
  struct wanted {
    const char* fault;
    uint64_t pinned;
  };
  // The first registration is that of staging memory.
  for (const wanted& each : {wanted{"lack read_only_pins", 0},
                             {"refuse cuMemHostRegister+1", 0},
                             {"refuse cuMemHostRegister+2", segment_bytes},
                             {"refuse cuMemHostGetDevicePointer+1", 0}}) {
    SCOPED_TRACE(each.fault);
    gpu_daemon::faults(each.fault);
    daemon_under_test daemon(options(2));
    tester client(daemon.socket());
    auto region = registered(client);
    EXPECT_TRUE(daemon.await_log("reads " + readable_bytes(each.pinned) + " of host memory itself"));
    EXPECT_EQ(device_of(client).pinned_bytes, each.pinned);
    auto chain = chain_of(1, 8); // more than a segment
    client.store(chain);
    load(client, region, chain);
    auto shown = device_of(client);
    EXPECT_EQ(shown.direct_bytes + shown.staged_bytes, 8 * object_bytes);
    EXPECT_EQ(shown.direct_bytes != 0, each.pinned != 0);
    EXPECT_NE(shown.staged_bytes, 0U);
    EXPECT_EQ(shown.state, "ready");
    gpu_daemon::faults("");
    EXPECT_TRUE(region.unregister(patiently()));
    ASSERT_TRUE(eventually([&] { return device_of(client).pid == 0; }));
    region = registered(client);
    EXPECT_TRUE(pins(client, 2 * segment_bytes)) << "the next process tries again";
  }
}

TEST_P(GpuArenaFault, AHangEndsTheProcessAndNothingElse) {
  SKIP_ON_REAL_DRIVER();
  for (const char* fault : {"hang copies", "hang cuMemHostRegister+2"}) {
    SCOPED_TRACE(fault);
    gpu_daemon::faults(fault);
    daemon_under_test daemon(options(2, "deadline = \"5s\"\n"));
    tester client(daemon.socket()), other(daemon.socket(), "other");
    auto chain = chain_of(1, 4);
    client.store(chain);
    auto region = client->register_device_region(memory_->shared(), patiently());
    if (region) {
      EXPECT_TRUE(eventually([&] { return device_of(other).pinned_bytes >= segment_bytes; }));
      auto lost = load_into(client, *region, chain, interleaved(4));
      ASSERT_FALSE(lost);
      EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
      EXPECT_TRUE(region->unregister(patiently()));
    } else {
      EXPECT_EQ(region.error().code, errc::gone) << region.error().text;
    }
    EXPECT_EQ(other.load_and_check(chain), 4U);
    ASSERT_TRUE(eventually([&] { return device_of(other).pid == 0; }));
    EXPECT_EQ(device_of(other).state, "degraded");
    EXPECT_TRUE(eventually([&] { return other.tier("host").leased_objects == 0; }));
    gpu_daemon::faults("");
    auto again = registered(client);
    ASSERT_TRUE(pins(client, 2 * segment_bytes));
    load(client, again, chain);
    EXPECT_EQ(device_of(client).direct_bytes, 4 * object_bytes);
    EXPECT_EQ(daemon.terminate(), 0);
  }
}

TEST_P(GpuArenaFault, ALostDeviceLosesNothingOfIt) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("lose context"); // the daemon may notice it only at the deadline
  daemon_under_test daemon(options(2, "deadline = \"2s\"\n"));
  tester client(daemon.socket());
  auto region = registered(client);
  ASSERT_TRUE(pins(client, 2 * segment_bytes));
  auto chain = chain_of(1, 4);
  client.store(chain);
  auto lost = load_into(client, region, chain, interleaved(4));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
  gpu_daemon::faults("");
  EXPECT_TRUE(region.unregister(patiently()));
  region = registered(client);
  ASSERT_TRUE(pins(client, 2 * segment_bytes));
  load(client, region, chain);
  EXPECT_EQ(client.load_and_check(chain), 4U);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuArenaFault, ::testing::Values(device_kind::cuda_handle),
                         [](const auto& each) { return to_string(each.param); });

} // namespace
} // namespace terrace::e2e
