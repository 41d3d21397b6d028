// Memory that is known only by its address, on the simulated driver or a real one.
#include "client/device_memory.hpp"
#include "client/device_place.hpp"

#include "driver_fixture.hpp"
#include "gpu/cuda/cuda_memory.hpp"

#include <cstring>

namespace terrace::cuda {
namespace {

using client::find_device_memory;

class DevicePlace : public DriverTest {
 protected:
  client::device_range at(uint64_t address, uint64_t bytes) const {
    return {.address = address, .bytes = bytes, .driver = driver_library()};
  }
  errc code_of(const client::device_range& range, const std::string& says = {}) {
    auto place = find_device_memory(range);
    if (place)
      return errc::ok;
    EXPECT_NE(place.error().text.find(says), std::string::npos) << place.error().text;
    return place.error().code;
  }
};

TEST_F(DevicePlace, IsInTheAllocationAroundIt) {
  constexpr uint64_t bytes = 4 << 20, inner = 1 << 20, offset = 3 << 19;
  auto memory = allocation::make(in_context(), bytes).value();
  auto place = find_device_memory(at(memory.get().address + offset, inner));
  ASSERT_TRUE(place) << place.error().text;
  EXPECT_EQ(place->allocation.device, to_text(loaded->devices().value().front().uuid));
  EXPECT_EQ(place->allocation.descriptor, -1);
  // On a real driver an allocation may lie inside of a larger one.
  EXPECT_EQ(place->allocation.bytes, place->offset + inner);
  if (on_real_driver())
    return;
  EXPECT_EQ(place->offset, offset);
  auto handle = memory.share().value();
  EXPECT_EQ(std::memcmp(handle.reserved, place->allocation.handle.data(), sizeof handle.reserved), 0);
}

TEST_F(DevicePlace, IsOfTheDeviceThatHasTheMemory) {
  if (loaded->devices().value().size() < 2)
    GTEST_SKIP() << "one device";
  auto second = context::retain(loaded, 1).value();
  auto memory = allocation::make(second, 1 << 20).value();
  auto place = find_device_memory(at(memory.get().address, 1 << 20));
  ASSERT_TRUE(place) << place.error().text;
  EXPECT_EQ(place->allocation.device, to_text(loaded->devices().value()[1].uuid));
}

TEST_F(DevicePlace, IsRefusedForOtherMemory) {
  auto memory = allocation::make(in_context(), 1 << 20).value();
  auto address = memory.get().address;
  EXPECT_EQ(code_of(at(address, 0), "at least one byte"), errc::bad_request);
  if (!on_real_driver()) { // a real one may round allocations up
    EXPECT_EQ(code_of(at(address + 4096, 1 << 20), "inside of one allocation"), errc::bad_request);
    EXPECT_EQ(code_of(at(address, UINT64_MAX), "inside of one allocation"), errc::bad_request);
  }
  host_pages pages(4096);
  EXPECT_EQ(code_of(at(pages.address(), 4096), "expected memory of a GPU"), errc::bad_request);
  auto pinned = registration::make(in_context(), pages.bytes()).value();
  EXPECT_EQ(code_of(at(pages.address(), 4096), "which is the host's"), errc::bad_request);
}

TEST_F(DevicePlace, SaysWhatCannotBeSharedByHandle) {
  auto page = page_bytes(*in_context());
  ASSERT_TRUE(page) << page.error().text;
  auto physical = physical_memory::make(in_context(), *page);
  ASSERT_TRUE(physical) << physical.error().text;
  auto segment = virtual_memory::make(std::move(*physical), *page);
  ASSERT_TRUE(segment) << segment.error().text;
  EXPECT_EQ(code_of(at(segment->range().address, 4096), "expandable_segments"), errc::unsupported);
}

TEST_F(DevicePlace, ErrorsOfTheDriverAreReported) {
  EXPECT_EQ(code_of({.address = 1, .bytes = 1, .driver = "libnone.so.1"}, "no CUDA driver"),
            errc::unsupported);
  SKIP_ON_REAL_DRIVER();
  auto memory = allocation::make(in_context(), 4096).value();
  auto here = at(memory.get().address, 4096);
  for (const char* function : {"cuDeviceGetUuid", "cuDevicePrimaryCtxRetain", "cuMemGetAddressRange"}) {
    sim.fail(function, status::out_of_memory, 0, 1);
    EXPECT_EQ(code_of(here, function), errc::no_space) << function;
  }
  for (unsigned before : {0U, 1U}) {
    sim.fail("cuPointerGetAttribute", status::invalid_value, before, 1);
    EXPECT_EQ(code_of(here, "cuPointerGetAttribute"), errc::bad_request) << before;
  }
  sim.fail("cuIpcGetMemHandle", status::not_supported, 0, 1);
  EXPECT_EQ(code_of(here, "shared by handle"), errc::unsupported);
  sim.hide("cuIpcGetMemHandle");
  EXPECT_EQ(code_of(here, "shared by handle"), errc::unsupported);
  EXPECT_EQ(code_of(here), errc::unsupported);
}

class DeviceMemory : public DriverTest {
 protected:
  result<std::unique_ptr<client::device_memory>> make(uint64_t bytes, const std::string& device = {}) const {
    auto first = to_text(loaded->devices().value().front().uuid);
    return client::device_memory::make(
        {.device = device.empty() ? first : device, .bytes = bytes, .driver = driver_library()});
  }
};

TEST_F(DeviceMemory, CanBeRegistered) {
  auto memory = make(1 << 20);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_EQ((*memory)->bytes(), 1U << 20);
  auto place = find_device_memory(
      {.address = (*memory)->address(), .bytes = (*memory)->bytes(), .driver = driver_library()});
  ASSERT_TRUE(place) << place.error().text;
  EXPECT_EQ(place->allocation.device, to_text(loaded->devices().value().front().uuid));
}

TEST_F(DeviceMemory, IsRefusedWithAReason) {
  EXPECT_EQ(make(0).error().code, errc::bad_request);
  EXPECT_EQ(make(4096, "no UUID").error().code, errc::bad_request);
  EXPECT_EQ(make(4096, "GPU-00000000-0000-0000-0000-00000000ffff").error().code, errc::not_found);
  EXPECT_EQ(make(uint64_t{1} << 50).error().code, errc::no_space);
  client::device_memory_options nowhere{
      .device = to_text(loaded->devices().value().front().uuid), .bytes = 1, .driver = "libnone.so.1"};
  EXPECT_EQ(client::device_memory::make(nowhere).error().code, errc::unsupported);
}

} // namespace
} // namespace terrace::cuda
