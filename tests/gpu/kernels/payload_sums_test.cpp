#include "gpu/kernels/payload_sums.hpp"

#include "driver_fixture.hpp"
#include "gpu/kernels/kernel_image.hpp"
#include "index/payload_checksum.hpp"

#include <cstring>
#include <random>

namespace terrace::gpu {
namespace {

using namespace terrace::cuda;

/// Lengths around every limit of the algorithm: stripes, blocks, the kernel's groups of blocks, and odd ends.
std::vector<uint64_t> lengths() {
  std::vector<uint64_t> all;
  for (uint64_t bytes = payload_sum_bytes_min; bytes < payload_sum_bytes_min + 140; ++bytes)
    all.push_back(bytes);
  for (uint64_t blocks : {1, 2, 7, 8, 9, 15, 16, 17, 64})
    for (uint64_t beside : {0, 1, 2, 62, 63, 64, 65, 66, 70, 127, 128, 129, 200, 961, 1023})
      for (uint64_t bytes : {blocks * xxh3::block_bytes + beside, blocks * xxh3::block_bytes - beside})
        if (bytes >= payload_sum_bytes_min)
          all.push_back(bytes);
  return all;
}

std::vector<std::byte> random_bytes(uint64_t bytes, uint64_t seed) {
  std::vector<std::byte> made(bytes);
  fill(made, seed);
  return made;
}

uint64_t on_host(std::span<const std::byte> payload) {
  auto read = [](uint64_t address) {
    uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
  };
  return sum_of_payload({reinterpret_cast<uint64_t>(payload.data()), payload.size()}, read);
}

TEST(PayloadSums, AreTheChecksumsOfPayloadsOfEveryLength) {
  for (uint64_t bytes : lengths()) {
    auto payload = random_bytes(bytes, bytes);
    ASSERT_EQ(on_host(payload), payload_checksum(payload)) << bytes << " bytes";
  }
}

TEST(PayloadSums, ChangeWithEveryBit) {
  auto payload = random_bytes(2000, 3);
  const uint64_t before = on_host(payload);
  for (size_t i = 0; i < payload.size(); ++i) {
    payload[i] ^= std::byte{1} << i % 8;
    ASSERT_NE(on_host(payload), before) << "byte " << i;
    payload[i] ^= std::byte{1} << i % 8;
  }
}

class SumKernelTest : public DriverTest {
 protected:
  function_handle load() {
    auto image = sums_image();
    const void* code = image.empty() ? static_cast<const void*>("no code") : image.data();
    EXPECT_TRUE(in_context()->call("cuModuleLoadData", home->api().ModuleLoadData, &module, code));
    function_handle kernel = nullptr;
    EXPECT_TRUE(
        home->call("cuModuleGetFunction", home->api().ModuleGetFunction, &kernel, module, sums_kernel_name));
    return kernel;
  }
  void TearDown() override {
    if (module && !lost)
      home->call("cuModuleUnload", home->api().ModuleUnload, module);
    DriverTest::TearDown();
  }
  result<void> launch(function_handle kernel, sum_batch& batch, const stream& work) {
    void* parameters[] = {&batch};
    return home->call("cuLaunchKernel", home->api().LaunchKernel, kernel, batch.payloads, 1u, 1u,
                      sum_thread::count, 1u, 1u, 0u, work.get(), &parameters[0],
                      static_cast<void**>(nullptr));
  }
  module_handle module = nullptr;
};

TEST_F(SumKernelTest, ManyPayloadsInALaunch) {
  if (on_real_driver() && sums_image().empty())
    GTEST_SKIP() << "built without the toolkit";
  auto kernel = load();
  auto work = stream::make(home).value();
  host_pages pages(8 << 20);
  auto pinned = registration::make(home, pages.bytes()).value();
  fill(pages.bytes(), 4);
  auto memory = allocation::make(home, 8 << 20).value();
  ASSERT_TRUE(home->call("cuMemcpyAsync", home->api().MemcpyAsync, memory.get().address, pinned.address(),
                         size_t{8 << 20}, work.get()));
  ASSERT_TRUE(work.synchronize());
  auto all = lengths();
  all.push_back(7'654'321);
  for (size_t first = 0; first < all.size(); first += sum_batch::payloads_max) {
    sum_batch batch;
    batch.payloads = static_cast<uint32_t>(std::min<size_t>(all.size() - first, sum_batch::payloads_max));
    batch.sums = pinned.address();
    for (uint32_t i = 0; i < batch.payloads; ++i)
      batch.payload[i] = {memory.get().address + i * 8, all[first + i]};
    ASSERT_TRUE(launch(kernel, batch, work));
    ASSERT_TRUE(work.synchronize());
    std::vector<uint64_t> sums(batch.payloads);
    std::memcpy(sums.data(), pages.bytes().data(), sums.size() * 8);
    fill(pages.bytes().first(4096), 4);
    for (uint32_t i = 0; i < batch.payloads; ++i)
      ASSERT_EQ(sums[i], payload_checksum(pages.bytes().subspan(i * 8, all[first + i]))) << all[first + i];
  }
}

TEST_F(SumKernelTest, WhatIsNotTheDevicesEndsTheContext) {
  SKIP_ON_REAL_DRIVER();
  lost = true;
  auto kernel = load();
  auto work = stream::make(home).value();
  auto memory = allocation::make(home, 4096).value();
  sum_batch batch;
  batch.payloads = 1;
  batch.sums = memory.get().address;
  batch.payload[0] = {memory.get().address, 4097};
  ASSERT_TRUE(launch(kernel, batch, work)) << "a launch does not look";
  EXPECT_FALSE(work.synchronize());
  work.reset();
  memory.reset();
  expect_broken({"terrace_payload_sums: runs over the end of an allocation"});
}

} // namespace
} // namespace terrace::gpu
