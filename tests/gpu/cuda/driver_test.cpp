#include "gpu/cuda/driver.hpp"

#include "driver_fixture.hpp"

namespace terrace::cuda {
namespace {

TEST(Driver, AbsenceIsAnErrorWithAReason) {
  auto opened = driver::open("libcuda-that-nobody-has.so.1");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported);
  EXPECT_NE(opened.error().text.find("libcuda-that-nobody-has"), std::string::npos) << opened.error().text;
  EXPECT_EQ(report(opened), opened.error().text + "\n");
}

TEST(Driver, ALibraryOfAnotherKindIsNoDriver) {
  auto opened = driver::open("libc.so.6");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("cuGetProcAddress"), std::string::npos) << opened.error().text;
}

TEST_F(DriverTest, TellsItsDevicesAndWhatTheyCan) {
  auto devices = loaded->devices();
  ASSERT_TRUE(devices) << devices.error().text;
  ASSERT_FALSE(devices->empty());
  EXPECT_GT(loaded->version(), 11000);
  for (const auto& one : *devices) {
    auto found = loaded->find_device(one.uuid);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ordinal, one.ordinal);
    EXPECT_EQ(*parse_uuid(to_text(one.uuid)), one.uuid);
    EXPECT_GT(one.memory_bytes, 0u);
    EXPECT_NE(report(loaded).find(to_text(one.uuid)), std::string::npos) << report(loaded);
  }
}

TEST_F(DriverTest, ReportsEachDeviceInALine) {
  SKIP_ON_REAL_DRIVER();
  EXPECT_EQ(report(loaded),
            "CUDA driver 13.0\n"
            "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00 simulated device 0, 64 MiB, compute 9.0: IPC VMM "
            "stream-memory-ops read-only-pins no GPUDirect no dma-buf\n"
            "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01 simulated device 1, 64 MiB, compute 9.0: IPC VMM "
            "stream-memory-ops read-only-pins no GPUDirect no dma-buf\n");
}

TEST_F(DriverTest, OptionalFunctionsMayBeMissing) {
  SKIP_ON_REAL_DRIVER();
  sim.set_version(12080); // in this version batched copies have another signature
  auto older = driver::open(driver_library());
  ASSERT_TRUE(older) << older.error().text;
  EXPECT_EQ((*older)->missing(), (std::vector<std::string>{"cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync"}));
  EXPECT_EQ((*older)->api().MemcpyBatchAsync, nullptr);

  sim.hide("cuStreamWaitValue32");
  sim.hide("cuIpcOpenEventHandle");
  sim.hide("cuMemSetAccess");
  auto poorer = driver::open(driver_library());
  ASSERT_TRUE(poorer);
  auto device = (*poorer)->devices().value().front();
  EXPECT_FALSE(device.stream_memory_ops);
  EXPECT_FALSE(device.ipc);
  EXPECT_FALSE(device.virtual_memory);
  EXPECT_NE(report(*poorer).find(", without cuIpcOpenEventHandle, cuMemSetAccess, cuStreamWaitValue32"),
            std::string::npos)
      << report(*poorer);
}

TEST_F(DriverTest, RequiredFunctionsMayNot) {
  SKIP_ON_REAL_DRIVER();
  sim.hide("cuMemAlloc");
  sim.hide("cuLaunchHostFunc");
  auto opened = driver::open(driver_library());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::unsupported);
  EXPECT_NE(opened.error().text.find("lacks cuMemAlloc, cuLaunchHostFunc"), std::string::npos)
      << opened.error().text;
}

TEST_F(DriverTest, WithoutADeviceThereIsNone) {
  SKIP_ON_REAL_DRIVER();
  sim.reset(0, 1 << 20, 1);
  auto opened = driver::open(driver_library());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().text, "cuInit: CUDA_ERROR_NO_DEVICE");
}

TEST_F(DriverTest, ErrorsHaveTheDriversNameAndOurKind) {
  EXPECT_TRUE(loaded->check(status::success, "cuAnything"));
  EXPECT_EQ(loaded->check(status::out_of_memory, "cuMemAlloc").error(),
            (error{errc::no_space, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"}));
  EXPECT_EQ(loaded->check(status::not_supported, "x").error().code, errc::unsupported);
  EXPECT_EQ(loaded->check(status::illegal_address, "x").error().code, errc::gone);
  EXPECT_EQ(loaded->check(status::invalid_value, "x").error().code, errc::internal);
  EXPECT_EQ(loaded->name_of(static_cast<status>(123456)), "CUDA error 123456");
}

TEST_F(DriverTest, ADeviceOfAnotherMachineIsNotFound) {
  auto found = loaded->find_device(device_uuid{});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::not_found);
}

TEST(DeviceUuid, IsReadAsItIsWritten) {
  auto uuid = parse_uuid("GPU-01234567-89ab-cdef-0123-456789ABCDEF");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(to_text(*uuid), "GPU-01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(parse_uuid("0123456789abcdef0123456789abcdef"), uuid);
  for (auto text : {"", "GPU-", "GPU-0123", "GPU-01234567-89ab-cdef-0123-456789abcdeg",
                    "0123456789abcdef0123456789abcdef0"})
    EXPECT_EQ(parse_uuid(text).error().code, errc::bad_request) << text;
}

// If the driver refuses a function of the table, the error names that function.
TEST_F(DriverTest, EveryRefusalIsAnErrorThatNamesTheFunction) {
  SKIP_ON_REAL_DRIVER();
  for (auto code : {status::out_of_memory, status::invalid_value, status::unknown}) {
    auto fails = [&](const char* function) { sim.fail(function, code, 0, 1); };
    auto is_of = [&](const char* function, const auto& failed) {
      ASSERT_FALSE(failed) << function;
      EXPECT_EQ(failed.error().text.find(std::string(function) + ": "), 0u) << failed.error().text;
    };
    fails("cuDevicePrimaryCtxRetain");
    is_of("cuDevicePrimaryCtxRetain", context::retain(loaded, 0));
    fails("cuStreamCreateWithPriority");
    is_of("cuStreamCreateWithPriority", stream::make(in_context()));
    fails("cuEventCreate");
    is_of("cuEventCreate", event::make(in_context()));
    fails("cuMemAlloc");
    is_of("cuMemAlloc", allocation::make(in_context(), 4096));
    host_pages pages(4096);
    fails("cuMemHostRegister");
    is_of("cuMemHostRegister", registration::make(in_context(), pages.bytes()));
    fails("cuMemHostGetDevicePointer"); // earlier registrations are given back
    is_of("cuMemHostGetDevicePointer", registration::make(in_context(), pages.bytes()));
  }
}

} // namespace
} // namespace terrace::cuda
