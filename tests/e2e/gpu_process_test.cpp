// The process of a GPU: faults of its driver, and what `terraced` reports about the machine's GPUs.
#include "gpu_daemon.hpp"

namespace terrace::e2e {
namespace {

// ---- faults of the driver ----

class DeviceFault : public ::testing::TestWithParam<const char*> {};

TEST_P(DeviceFault, EndsTheRequestsOfTheDeviceAndNothingElse) {
  SKIP_ON_REAL_DRIVER();
  if (test::sanitized("thread"))
    GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  gpu_daemon::faults(GetParam());
  gpu_daemon daemon("deadline = \"1s\"\n");
  tester client(daemon.socket()), other(daemon.socket(), "other");
  engine_memory mine(device_kind::cuda_handle, region_objects * object_bytes);
  auto chain = chain_of(1, 4);
  mine.write(laid_out(chain, interleaved(4)));
  auto region = client->register_device_region(mine.shared(), patiently());
  if (region) {
    auto lost = store_from(client, *region, chain, interleaved(4));
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
    EXPECT_TRUE(region->unregister(patiently()));
  } else {
    EXPECT_EQ(region.error().code, errc::gone) << region.error().text;
  }
  EXPECT_EQ(other.lookup(chain).found_chunks, 0U);
  auto others = chain_of(2, 4);
  other.store(others);
  EXPECT_EQ(other.load_and_check(others), 4U);
  EXPECT_EQ(device_of(other).state, "degraded");
  EXPECT_NE(device_of(other).reason, "");
  gpu_daemon::faults("");
  region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto stored = store_from(client, *region, chain, interleaved(4));
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(other.load_and_check(chain), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
  std::filesystem::remove(gpu_daemon::script());
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceFault,
                         ::testing::Values("hang copies", "hang cuIpcOpenMemHandle", "hang cuInit",
                                           "lose context"),
                         [](const auto& each) {
                           std::string name = each.param;
                           return name.replace(name.find(' '), 1, "_");
                         });

TEST(Devices, CanBeSwitchedOff) {
  gpu_daemon daemon("enabled = false\n");
  tester client(daemon.socket());
  engine_memory mine(device_kind::host, object_bytes);
  auto region = client->register_device_region(mine.shared(), patiently());
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, errc::unsupported);
  EXPECT_TRUE(client.status().devices.empty());
}

TEST(Devices, AreShownByTheVersion) {
  auto shown = run({program("TERRACED"), "--version"}, {}, test::find_driver);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_TRUE(shown.out.starts_with("terraced ")) << shown.out;
  EXPECT_NE(shown.out.find(test::on_real_driver() ? "\nGPU-" : "CUDA driver 13.0\nGPU-"), std::string::npos)
      << shown.out;
}

} // namespace
} // namespace terrace::e2e
