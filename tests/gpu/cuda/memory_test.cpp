#include "gpu/cuda/device_memory.hpp"

#include "driver_fixture.hpp"
#include "gpu/cuda/cuda_memory.hpp"

namespace terrace::cuda {
namespace {

class MemoryTest : public DriverTest {
 protected:
  /// Copies through the device's memory at `address` and back.
  void expect_round_trip(device_pointer address, size_t bytes) {
    host_pages pages(2 * bytes);
    auto pinned = registration::make(in_context(), pages.bytes()).value();
    auto stream = stream::make(in_context()).value();
    fill(pages.bytes().first(bytes), 7);
    const auto& api = home->api();
    ASSERT_TRUE(home->call("cuMemcpyAsync", api.MemcpyAsync, address, pinned.address(), bytes, stream.get()));
    ASSERT_TRUE(
        home->call("cuMemcpyAsync", api.MemcpyAsync, pinned.address() + bytes, address, bytes, stream.get()));
    ASSERT_TRUE(stream.synchronize());
    EXPECT_TRUE(has_pattern(pages.bytes().last(bytes), 7));
  }
};

TEST_F(MemoryTest, AllocationsKeepBytes) {
  auto memory = allocation::make(in_context(), 1 << 20).value();
  expect_round_trip(memory.get().address, 1 << 20);
}

TEST_F(MemoryTest, AFullDeviceIsNoSpace) {
  auto too_much = allocation::make(in_context(), uint64_t{1} << 50);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, errc::no_space);
}

TEST_F(MemoryTest, WhatIsFreedCanBeHadAgain) {
  SKIP_ON_REAL_DRIVER();
  for (int i = 0; i < 10; ++i) {
    auto most = allocation::make(in_context(), 40 << 20);
    ASSERT_TRUE(most) << i;
    EXPECT_FALSE(allocation::make(in_context(), 40 << 20));
  }
}

TEST_F(MemoryTest, MemoryMovesWithItsOwner) {
  auto first = allocation::make(in_context(), 4096).value();
  auto address = first.get().address;
  auto second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get().address, address);
  second = allocation::make(in_context(), 4096).value(); // the assignment ends the old allocation
  EXPECT_NE(second.get().address, 0u);
}

TEST_F(MemoryTest, HostPagesArePinnedOnce) {
  host_pages pages(8192);
  auto pinned = registration::make(in_context(), pages.bytes()).value();
  EXPECT_FALSE(registration::make(in_context(), pages.bytes().first(4096)));
  pinned.reset();
  EXPECT_TRUE(registration::make(in_context(), pages.bytes().first(4096)));
}

TEST_F(MemoryTest, VirtualMemoryKeepsBytes) {
  if (!loaded->devices().value().front().virtual_memory)
    GTEST_SKIP() << "the device has none";
  auto bytes = page_bytes(*in_context()).value();
  auto memory = virtual_memory::make(physical_memory::make(home, bytes).value(), bytes);
  ASSERT_TRUE(memory) << memory.error().text;
  expect_round_trip(memory->range().address, bytes);
}

TEST_F(MemoryTest, ViewsShareTheirPhysicalMemory) {
  if (!loaded->devices().value().front().virtual_memory)
    GTEST_SKIP() << "the device has none";
  auto bytes = page_bytes(*in_context()).value();
  auto first = virtual_memory::make(physical_memory::make(home, bytes).value(), bytes).value();
  auto descriptor = first.memory().share().value();
  auto second = virtual_memory::make(physical_memory::open(home, descriptor.get()).value(), bytes).value();
  host_pages pages(8192);
  auto pinned = registration::make(home, pages.bytes()).value();
  auto stream = stream::make(home).value();
  fill(pages.bytes().first(4096), 3);
  const auto& api = home->api();
  ASSERT_TRUE(home->call("cuMemcpyAsync", api.MemcpyAsync, first.range().address + 4096, pinned.address(),
                         size_t{4096}, stream.get()));
  ASSERT_TRUE(home->call("cuMemcpyAsync", api.MemcpyAsync, pinned.address() + 4096,
                         second.range().address + 4096, size_t{4096}, stream.get()));
  ASSERT_TRUE(stream.synchronize());
  EXPECT_TRUE(has_pattern(pages.bytes().last(4096), 3));
}

TEST_F(MemoryTest, AViewOfMoreThanThereIsIsRefusedAndLeavesNothing) {
  if (!loaded->devices().value().front().virtual_memory)
    GTEST_SKIP() << "the device has none";
  auto bytes = page_bytes(*in_context()).value();
  EXPECT_FALSE(physical_memory::make(home, bytes + 1));
  EXPECT_FALSE(virtual_memory::make(physical_memory::make(home, bytes).value(), 2 * bytes));
}

TEST_F(MemoryTest, AnyOldDescriptorIsNoMemory) {
  SKIP_ON_REAL_DRIVER(); // it takes a handle that it cannot use, and fails later
  EXPECT_FALSE(physical_memory::open(in_context(), 0));
}

} // namespace
} // namespace terrace::cuda
