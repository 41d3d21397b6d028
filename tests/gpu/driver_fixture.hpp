// Tests that run on a driver: the simulated one, or with TERRACE_GPU_TESTS=real the machine's own.
#pragma once

#include "driver/simulation.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/stream.hpp"
#include "tests/support/gpu_driver.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace terrace::cuda {

using test::driver_library;
using test::on_real_driver;
using test::simulated_driver;

/// The controls of the simulated driver.
struct simulation {
#define SIM_CONTROL(name) decltype(&sim_##name) name = find<decltype(&sim_##name)>("sim_" #name)
  SIM_CONTROL(reset);
  SIM_CONTROL(fail);
  SIM_CONTROL(fail_execution);
  SIM_CONTROL(hang);
  SIM_CONTROL(hang_all);
  SIM_CONTROL(hanging);
  SIM_CONTROL(hold_streams);
  SIM_CONTROL(release);
  SIM_CONTROL(hide);
  SIM_CONTROL(lack);
  SIM_CONTROL(lack_peers);
  SIM_CONTROL(set_version);
  SIM_CONTROL(calls);
  SIM_CONTROL(violations);
  SIM_CONTROL(violation);
  SIM_CONTROL(live);
#undef SIM_CONTROL

  template <class Function>
  static Function find(const char* name) {
    if (on_real_driver()) // a second library of its name would be found instead of it
      return nullptr;
    void* library =
        dlopen(simulated_driver().c_str(), RTLD_NOW | RTLD_LOCAL); // stays open, as the driver does
    if (!library)
      throw std::runtime_error(dlerror());
    return reinterpret_cast<Function>(dlsym(library, name));
  }

  std::vector<std::string> broken_rules() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < violations(); ++i)
      all.emplace_back(violation(i));
    return all;
  }
};

/// A driver. On the simulated driver, the test must give everything back and break no rule.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!on_real_driver())
      sim.reset(2, 64 << 20, static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1);
    auto opened = driver::open(driver_library());
    ASSERT_TRUE(opened) << opened.error().text;
    loaded = *opened;
  }

  void TearDown() override {
    home = nullptr;
    if (on_real_driver())
      return;
    sim.release();
    EXPECT_EQ(sim.broken_rules(), std::vector<std::string>());
    if (!lost) {
      EXPECT_EQ(sim.live(), 0u) << "something of the driver was not given back";
    }
  }

  /// Returns the first device's context, retained for the duration of the test.
  const std::shared_ptr<const context>& in_context() {
    if (!home)
      home = context::retain(loaded, 0).value();
    return home;
  }

  /// Expects that exactly these rules were broken, and forgets them.
  void expect_broken(const std::vector<std::string>& rules) {
    EXPECT_EQ(sim.broken_rules(), rules);
    home = nullptr;
    sim.reset(2, 64 << 20, 1);
  }

  simulation sim;
  std::shared_ptr<const driver> loaded;
  std::shared_ptr<const context> home;
  bool lost = false; ///< the test ended the context, so nothing could be given back
};

/// Pages that may be pinned.
class host_pages {
 public:
  explicit host_pages(size_t bytes);
  ~host_pages();
  host_pages(const host_pages&) = delete;
  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  std::byte& operator[](size_t i) const { return data_[i]; }
  device_pointer address() const { return reinterpret_cast<device_pointer>(data_); }

 private:
  std::byte* data_;
  size_t bytes_;
};

/// Bytes that differ from place to place and from seed to seed.
inline std::byte pattern(uint64_t seed, uint64_t at) {
  return static_cast<std::byte>((at * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u) >> 56);
}
void fill(std::span<std::byte> bytes, uint64_t seed);
testing::AssertionResult has_pattern(std::span<const std::byte> bytes, uint64_t seed);

} // namespace terrace::cuda
