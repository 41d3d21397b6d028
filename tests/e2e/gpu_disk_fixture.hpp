// A daemon whose GPU reads its disk itself, on the simulated driver and cuFile.
#pragma once

#include "gpu_daemon.hpp"
#include "tests/support/scrape.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace terrace::e2e {

constexpr auto from_disk = static_cast<size_t>(tier_kind::disk);

/// The disk tier has joined, so stored objects go there.
struct disk_daemon : daemon_under_test {
  explicit disk_daemon(const daemon_options& options) : daemon_under_test(options) {
    EXPECT_TRUE(await_log("the disk tier of group default joined"));
  }
};

class gpu_disk_fixture : public ::testing::Test {
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
  void TearDown() override {
    forget_hold();
    std::filesystem::remove(gpu_daemon::script());
  }

  /// Each object is a batch: a slot has 2 MiB.
  daemon_options options(const std::string& gpu = "deadline = \"20s\"\n", bool library = true,
                         bool reads = true) {
    auto made = gpu_daemon::options_of((reads ? "direct_bytes = \"8MiB\"\n" : "direct_bytes = 0\n") + gpu);
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
    auto gone = by->admin().evict(
        {.in = by.space(), .what = client::prefix::of_digests(chain), .tiers = tiers}, patiently());
    EXPECT_TRUE(gone) << gone.error().text;
  }
  static void only_on_disk(tester& by, const std::vector<digest>& chain) {
    by.store(chain);
    ASSERT_TRUE(eventually([&] { return by.lookup(chain, false, on_disk).found_chunks == chain.size(); }));
    ASSERT_TRUE(eventually([&] {
      evict(by, chain, on_host); // objects being written stay
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
    return by->async().load(request, patiently()).value();
  }
  /// Checks that everything that `begin_load` began has arrived.
  void expect_loaded(client::ticket<client::load_result>& loading, const std::vector<digest>& chain) {
    auto loaded = loading.wait(patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    EXPECT_TRUE(memory_->read() == laid_out(chain, runs_));
  }
  /// Makes the pipe for the fault `hold`, in which the call waits.
  static void make_hold() {
    forget_hold();
    ASSERT_EQ(::mkfifo((gpu_daemon::script() + ".hold").c_str(), 0600), 0);
  }
  static void forget_hold() {
    for (const char* kind : {".hold", ".holding"})
      std::filesystem::remove(gpu_daemon::script() + kind);
  }
  static bool holds() { return std::filesystem::exists(gpu_daemon::script() + ".holding"); }
  static void end_hold() {
    unique_fd end(
        ::open((gpu_daemon::script() + ".hold").c_str(), O_RDWR | O_CLOEXEC)); // waits for no reader
    EXPECT_TRUE(end);
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
  /// Checks that the device itself reads a whole chain that only the disk has.
  void expect_direct(tester& by, const client::registered_region& region, const std::vector<digest>& chain) {
    only_on_disk(by, chain);
    auto before = device_of(by).disk_bytes;
    load(by, region, chain);
    EXPECT_EQ(device_of(by).disk_bytes, before + chain.size() * object_bytes);
  }
  /// Makes the first load from a disk, which goes through host memory and opens the library and the file.
  void try_disk(tester& by, const client::registered_region& region) {
    auto chain = chain_of(900 + ++tried_, 1);
    only_on_disk(by, chain);
    load(by, region, chain);
    ASSERT_TRUE(eventually([&] { return is_settled(device_of(by).disk_reads); }));
  }
  static bool is_settled(const std::string& reads) { return reads != "not tried" && reads != "opening"; }
  static client::device_status status_of(tester& by, const engine_memory& memory) {
    for (const auto& each : by.status().devices)
      if (each.device == memory.shared().device)
        return each;
    return {};
  }
  /// Returns how many uses of objects on the disk its policy has seen.
  double uses() const {
    return test::number_behind(test::scrape(port_),
                               "terrace_tier_reuse_interval_seconds_count{group=\"default\",tier=\"disk\"}");
  }
  double counted(const std::string& name, tester& by) const {
    return test::number_behind(test::scrape(port_),
                               "terrace_device_" + name + "{device=\"" + device_of(by).device + "\"}");
  }
  /// Inverts a byte of the object on disk; `at` counts from its header block.
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

  /// Returns the daemon's number of descriptors for the disk's file.
  static size_t openings_of_disk(const daemon_under_test& daemon) {
    size_t found = 0;
    for (const auto& each :
         std::filesystem::directory_iterator("/proc/" + std::to_string(daemon.pid()) + "/fd")) {
      std::error_code gone;
      found += std::filesystem::read_symlink(each, gone) == daemon.state() + "/terrace.extents" ? 1 : 0;
    }
    return found;
  }

  uint16_t port_ = test::free_port();
  std::optional<engine_memory> memory_;
  std::vector<client::run> runs_;
  uint64_t tried_ = 0;
};

} // namespace terrace::e2e
