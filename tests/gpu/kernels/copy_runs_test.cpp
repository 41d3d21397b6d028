#include "gpu/kernels/copy_runs.hpp"

#include "driver_fixture.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <random>

namespace terrace::gpu {
namespace {

using namespace terrace::cuda;

TEST(CopyRuns, UnitsDivideEverything) {
  EXPECT_EQ(unit_bytes({1024, 2048, 4096, 0, 0, 1}), 16u);
  EXPECT_EQ(unit_bytes({1024, 2048, 4096, 64, 24, 2}), 8u) << "the strides count";
  EXPECT_EQ(unit_bytes({1024, 2048, 4096, 64, 24, 1}), 16u) << "of a single piece they do not";
  EXPECT_EQ(unit_bytes({1024, 2052, 4096, 0, 0, 1}), 4u);
  EXPECT_EQ(unit_bytes({1026, 2052, 4096, 0, 0, 1}), 2u);
  EXPECT_EQ(unit_bytes({1024, 2048, 33, 0, 0, 1}), 1u);
}

TEST(CopyRuns, EveryByteIsMovedOnceWhateverTheThreads) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    copy_run run;
    uint64_t unit = uint64_t{1} << random() % 6;
    run.bytes = (1 + random() % 20) * unit;
    run.count = random() % 6;
    run.source_stride = run.bytes + random() % 3 * unit;
    run.destination_stride = run.bytes + random() % 3 * unit;
    run.source = random() % 3 * unit;
    run.destination = random() % 3 * unit;
    std::vector<int> moved(run.destination + run.destination_stride * 6 + run.bytes);
    uint64_t threads = 1 + random() % 40;
    for (uint64_t thread = 0; thread < threads; ++thread)
      copy_share(run, thread, threads, [&](uint64_t to, uint64_t from, uint32_t bytes) {
        EXPECT_EQ((to | from) % bytes, 0u);
        for (uint32_t i = 0; i < bytes; ++i) {
          ++moved[to + i];
          auto piece = (to + i - run.destination) / run.destination_stride;
          EXPECT_EQ(from + i - run.source - piece * run.source_stride,
                    to + i - run.destination - piece * run.destination_stride);
        }
      });
    for (uint64_t i = 0; i < moved.size(); ++i) {
      auto inside = i >= run.destination && (i - run.destination) / run.destination_stride < run.count &&
                    (i - run.destination) % run.destination_stride < run.bytes;
      ASSERT_EQ(moved[i], inside ? 1 : 0) << "byte " << i << " in round " << round;
    }
  }
}

TEST(KernelImage, IsThereWhenTheToolkitWas) {
#ifdef TERRACE_CUDA_STUB
  EXPECT_GT(kernel_image().size(), 1000u);
#else
  EXPECT_TRUE(kernel_image().empty());
#endif
}

class CopyKernelTest : public DriverTest {
 protected:
  /// Loads the kernel; the simulated driver uses a twin of it, and any image will do.
  function_handle load() {
    auto image = kernel_image();
    const void* code = image.empty() ? static_cast<const void*>("no code") : image.data();
    EXPECT_TRUE(in_context()->call("cuModuleLoadData", home->api().ModuleLoadData, &module, code));
    function_handle kernel = nullptr;
    EXPECT_TRUE(
        home->call("cuModuleGetFunction", home->api().ModuleGetFunction, &kernel, module, copy_kernel_name));
    return kernel;
  }
  void TearDown() override {
    if (module && !lost)
      home->call("cuModuleUnload", home->api().ModuleUnload, module);
    DriverTest::TearDown();
  }
  result<void> launch(function_handle kernel, copy_batch& batch, const stream& work) {
    void* parameters[] = {&batch};
    return home->call("cuLaunchKernel", home->api().LaunchKernel, kernel, 4u, batch.runs, 1u, 128u, 1u, 1u,
                      0u, work.get(), &parameters[0], static_cast<void**>(nullptr));
  }
  module_handle module = nullptr;
};

TEST_F(CopyKernelTest, MovesWhatTheArithmeticSays) {
  if (on_real_driver() && kernel_image().empty())
    GTEST_SKIP() << "built without the toolkit";
  auto kernel = load();
  auto work = stream::make(home).value();
  host_pages pages(1 << 20);
  auto pinned = registration::make(home, pages.bytes()).value();
  auto memory = allocation::make(home, 1 << 18).value();
  fill(pages.bytes().first(1 << 18), 4);
  copy_batch there, back;
  there.runs = back.runs = 3;
  // Pieces of 16, 4 and 1 byte units are spread in the device's memory, and come back together.
  const uint64_t bytes[] = {4096, 1020, 333};
  uint64_t host = 0, device = 0;
  for (int i = 0; i < 3; ++i) {
    copy_run run{
        memory.get().address + device, pinned.address() + host, bytes[i], bytes[i] + 64, bytes[i], 10};
    there.run[i] = run;
    back.run[i] = {
        pinned.address() + (1 << 19) + host, run.destination, bytes[i], bytes[i], run.destination_stride, 10};
    host += bytes[i] * 10;
    device += (bytes[i] + 64) * 10;
  }
  ASSERT_TRUE(launch(kernel, there, work));
  ASSERT_TRUE(launch(kernel, back, work));
  ASSERT_TRUE(work.synchronize());
  EXPECT_TRUE(has_pattern(pages.bytes().subspan(1 << 19, host), 4));
}

TEST_F(CopyKernelTest, AWildAddressEndsTheContext) {
  SKIP_ON_REAL_DRIVER();
  lost = true;
  auto kernel = load();
  auto work = stream::make(home).value();
  auto memory = allocation::make(home, 4096).value();
  copy_batch batch;
  batch.runs = 1;
  batch.run[0] = {memory.get().address, memory.get().address + 4090, 16, 0, 0, 1};
  ASSERT_TRUE(launch(kernel, batch, work)) << "a launch does not look";
  EXPECT_EQ(work.synchronize().error().text, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
  work.reset();
  memory.reset();
  expect_broken({"terrace_copy_runs: runs over the end of an allocation"});
}

} // namespace
} // namespace terrace::gpu
