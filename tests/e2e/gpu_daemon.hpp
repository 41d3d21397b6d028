// A daemon whose GPU processes find the tests' driver, and the contents of an engine's memory.
#pragma once

#include "engine_memory.hpp"
#include "tests/support/gpu_driver.hpp"
#include "workload.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

namespace terrace::e2e {

constexpr uint64_t region_objects = 8;
constexpr uint64_t piece_bytes = 64 << 10;
constexpr uint64_t pieces = object_bytes / piece_bytes;

/// A daemon whose processes find the tests' driver. The simulated driver has the faults of its script when
/// they start.
struct gpu_daemon : daemon_under_test {
  explicit gpu_daemon(const std::string& gpu = "") : daemon_under_test(options_of(gpu)) {}

  static daemon_options options_of(const std::string& gpu) {
    daemon_options options;
    options.more =
        "[gpu]\n" + gpu; // 8 MiB of staging memory make slots of 128 KiB: each object takes several
    options.before_exec = [faults_in = script()] {
      test::find_driver();
      ::setenv("TERRACE_SIMULATION", faults_in.c_str(), 1);
    };
    return options;
  }
  static std::string script() { return "/tmp/terrace-simulation-" + std::to_string(::getpid()); }
  /// Sets the faults of GPU processes that start from now on.
  static void faults(const std::string& lines) { write_file(script(), lines); }
};

/// Returns runs in which the i-th object's pieces lie among those of all others, like a paged engine's
/// blocks.
inline std::vector<client::run> interleaved(size_t objects) {
  std::vector<client::run> runs;
  for (uint64_t i = 0; i < objects; ++i)
    runs.push_back({.offset = i * piece_bytes,
                    .bytes = piece_bytes,
                    .stride = region_objects * piece_bytes,
                    .count = static_cast<uint32_t>(pieces)});
  return runs;
}

/// Returns runs of the same objects one after the other, the last one first.
inline std::vector<client::run> backwards(size_t objects) {
  std::vector<client::run> runs;
  for (uint64_t i = 0; i < objects; ++i)
    runs.push_back({.offset = (region_objects - 1 - i) * object_bytes, .bytes = object_bytes});
  return runs;
}

/// Returns the contents of an engine's memory with `chain` in these places.
inline std::vector<uint8_t> laid_out(const std::vector<digest>& chain, const std::vector<client::run>& runs) {
  std::vector<uint8_t> all(region_objects * object_bytes, 0x5a), object(object_bytes);
  for (size_t i = 0; i < chain.size(); ++i) {
    fill_content(chain[i], object);
    for (uint64_t piece = 0, at = 0; piece < std::max<uint64_t>(runs[i].count, 1);
         ++piece, at += runs[i].bytes)
      std::memcpy(all.data() + runs[i].offset + piece * runs[i].stride, object.data() + at, runs[i].bytes);
  }
  return all;
}

inline result<client::store_result> store_from(tester& by, const client::registered_region& region,
                                               const std::vector<digest>& chain,
                                               const std::vector<client::run>& runs,
                                               std::optional<client::generation> after = {}) {
  auto request = by.store_of(chain);
  request.region = &region;
  request.runs = runs;
  request.after = after;
  return by->store(request, patiently());
}

inline result<client::load_result> load_into(tester& by, const client::registered_region& region,
                                             const std::vector<digest>& chain,
                                             const std::vector<client::run>& runs) {
  auto request = by.load_of(chain);
  request.region = &region;
  request.runs = runs;
  return by->load(request, patiently());
}

/// Loads what the lease holds.
inline client::load_request load_under(tester& by, const client::lease& held,
                                       const client::registered_region& region,
                                       const std::vector<digest>& chain,
                                       const std::vector<client::run>& runs) {
  auto request = by.load_of(chain);
  request.what = {};
  request.lease = held.id();
  request.region = &region;
  request.runs = runs;
  return request;
}

inline client::device_status device_of(tester& by) {
  auto status = by.status();
  EXPECT_EQ(status.devices.size(), 1U);
  return status.devices.empty() ? client::device_status{} : status.devices.front();
}

/// Runs for each kind of device; the simulated driver's processes have no faults when a test begins.
class device_fixture : public ::testing::TestWithParam<device_kind> {
 protected:
  void SetUp() override {
    gpu_daemon::faults("");
    if (GetParam() != device_kind::host && test::sanitized("thread"))
      GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  }
  void TearDown() override { std::filesystem::remove(gpu_daemon::script()); }
};

} // namespace terrace::e2e
