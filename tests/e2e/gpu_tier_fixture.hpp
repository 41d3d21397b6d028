// A tier in memory of a device, on the host device and on the simulated driver.
#pragma once

#include "gpu_daemon.hpp"
#include "tests/support/scrape.hpp"

#include <stdexcept>

namespace terrace::e2e {

constexpr auto in_gpu = static_cast<size_t>(tier_kind::gpu);
constexpr uint32_t on_gpu = 1U << static_cast<unsigned>(tier_kind::gpu);

class gpu_tier_fixture : public device_fixture {
 protected:
  void SetUp() override {
    device_fixture::SetUp();
    if (!IsSkipped())
      memory_.emplace(GetParam(), region_objects * object_bytes);
  }

  /// Returns options of a daemon with a tier for this many objects.
  daemon_options options(uint64_t objects, const std::string& more = {}) const {
    auto made = gpu_daemon::options_of("deadline = \"10s\"\ntier_device = \"" + memory_->shared().device +
                                       "\"\ntier_bytes = " + std::to_string(objects * (object_bytes + 4096)) +
                                       "\n" + more);
    made.host = "policy = \"lru\"\n";
    made.disk = "allocator = \"free_list\"\n";
    return made;
  }
  /// Adds metrics at `port_`.
  daemon_options with_metrics(uint64_t objects, const std::string& more = {}) {
    auto made = options(objects, more);
    port_ = test::free_port();
    made.metrics = "127.0.0.1:" + std::to_string(port_);
    return made;
  }
  /// Returns a metric of the tier.
  double counted(const std::string& name, const std::string& more_labels = {}) const {
    return test::number_behind(
        test::scrape(port_), "terrace_tier_" + name + "{group=\"default\",tier=\"gpu\"" + more_labels + "}");
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
  /// Promotes the chain by a load from host memory. Returns false if not all of it is in the tier.
  bool promoted(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    load(by, region, chain);
    return eventually([&] { return by.lookup(chain, false, on_gpu).found_chunks == chain.size(); });
  }
  /// Leaves the chain in the tier and nowhere else.
  void only_there(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    by.store(chain);
    ASSERT_TRUE(promoted(by, region, chain));
    // The promotion ends its holds after its objects are found: until then nothing is freed.
    ASSERT_TRUE(eventually([&] { return by.tier("host").leased_objects == 0; }));
    evict(by, chain, on_host);
    EXPECT_EQ(by.lookup(chain, false, on_host).found_chunks, 0U);
  }
  static result<client::move_result> move(tester& by, const std::vector<digest>& chain, tier_kind to) {
    return by->admin().move({.in = by.space(), .what = client::prefix::of_digests(chain)}, to, patiently());
  }
  static void evict(tester& by, const std::vector<digest>& chain, uint32_t tiers) {
    auto gone = by->admin().evict(
        {.in = by.space(), .what = client::prefix::of_digests(chain), .tiers = tiers}, patiently());
    EXPECT_TRUE(gone) << gone.error().text;
  }

  std::optional<engine_memory> memory_;
  uint16_t port_ = 0;
};

/// The kinds of devices for the tier's tests.
inline auto tier_devices() { return ::testing::Values(device_kind::host, device_kind::cuda_handle); }
inline std::string device_name(const ::testing::TestParamInfo<device_kind>& each) {
  return to_string(each.param);
}

} // namespace terrace::e2e
