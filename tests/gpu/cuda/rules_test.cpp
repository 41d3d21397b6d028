// The simulated driver checks the rules that the real driver leaves to its users, and causes faults where a
// test wants them. The tests break each rule to prove the simulation.
#include "driver_fixture.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "gpu/kernels/copy_runs.hpp"

#include <atomic>
#include <future>
#include <thread>

#include <sys/mman.h>

namespace terrace::cuda {
namespace {

class RulesTest : public DriverTest {
 protected:
  void SetUp() override {
    SKIP_ON_REAL_DRIVER();
    DriverTest::SetUp();
  }

  const functions& api() const { return loaded->api(); }
  status copy(device_pointer to, device_pointer from, size_t bytes, const stream& in) {
    return home->raw(api().MemcpyAsync, to, from, bytes, in.get());
  }
};

TEST_F(RulesTest, CallsNeedACurrentContext) {
  device_pointer address = 0;
  EXPECT_EQ(api().MemAlloc(&address, 4096), status::invalid_context);
}

TEST_F(RulesTest, HandlesBelongToTheirContext) {
  auto work = stream::make(in_context()).value();
  auto other = context::retain(loaded, 1).value();
  EXPECT_EQ(other->raw(api().StreamQuery, work.get()), status::invalid_handle);
  other = nullptr;
  work.reset();
  expect_broken({"a stream of another context than the current one"});
}

TEST_F(RulesTest, HandlesEnd) {
  auto handle = stream::make(in_context()).value().get();
  auto ended_event = event::make(home).value().get();
  EXPECT_EQ(home->raw(api().StreamQuery, handle), status::invalid_handle);
  EXPECT_EQ(home->raw(api().StreamDestroy, handle), status::invalid_handle);
  EXPECT_EQ(home->raw(api().EventQuery, ended_event), status::invalid_handle);
  EXPECT_EQ(home->raw(api().EventDestroy, ended_event), status::invalid_handle);
  EXPECT_EQ(home->raw(api().StreamQuery, stream_handle{}), status::invalid_handle);
  expect_broken({"a stream that was destroyed", "a stream that was destroyed", "an event that was destroyed",
                 "an event that was destroyed", "the default stream, which waits for all others"});
}

TEST_F(RulesTest, MemoryIsGivenBackOnce) {
  auto memory = allocation::make(in_context(), 4096).value().get();
  host_pages pages(4096);
  void* begin = pages.bytes().data();
  registration::make(home, pages.bytes()).value().reset();
  auto bytes = page_bytes(*home).value();
  auto physical = physical_memory::make(home, bytes).value().get();
  EXPECT_EQ(home->raw(api().MemFree, memory.address), status::invalid_value);
  EXPECT_EQ(home->raw(api().MemHostUnregister, begin), status::host_memory_not_registered);
  EXPECT_EQ(home->raw(api().MemRelease, physical), status::invalid_value);
  EXPECT_EQ(home->raw(api().IpcCloseMemHandle, memory.address), status::invalid_value);
  expect_broken({"cuMemFree: twice", "cuMemHostUnregister: twice", "cuMemRelease: twice",
                 "cuIpcCloseMemHandle: twice"});
}

TEST_F(RulesTest, MemoryInFlightIsNotFreed) {
  auto work = stream::make(in_context()).value();
  host_pages pages(8192);
  auto pinned = registration::make(home, pages.bytes()).value();
  auto memory = allocation::make(home, 4096).value();
  sim.hold_streams();
  ASSERT_EQ(copy(memory.get().address, pinned.address(), 4096, work), status::success);
  ASSERT_EQ(home->raw(api().StreamWriteValue32, work.get(), pinned.address(), 1u, write_value_default),
            status::success);
  memory.reset();
  pinned.reset();
  sim.release();
  EXPECT_TRUE(work.synchronize()) << "the simulation itself survives it";
  work.reset();
  expect_broken(
      {"cuMemFree: memory that a stream still uses", "cuMemHostUnregister: memory that a stream still uses"});
}

TEST_F(RulesTest, AsynchronousCopiesNeedPinnedMemory) {
  auto work = stream::make(in_context()).value();
  auto memory = allocation::make(home, 4096).value();
  std::vector<std::byte> pageable(4096);
  EXPECT_EQ(copy(memory.get().address, reinterpret_cast<device_pointer>(pageable.data()), 4096, work),
            status::invalid_value);
  work.reset();
  memory.reset();
  expect_broken({"cuMemcpyAsync: memory that is neither the device's nor pinned"});
}

TEST_F(RulesTest, CopiesStayInsideTheirMemory) {
  auto work = stream::make(in_context()).value();
  auto first = allocation::make(home, 4096).value();
  auto second = allocation::make(home, 4096).value();
  EXPECT_EQ(copy(first.get().address + 4000, second.get().address, 97, work), status::invalid_value);
  for (auto* memory : {&first, &second})
    memory->reset();
  work.reset();
  expect_broken({"cuMemcpyAsync: runs over the end of an allocation"});
}

TEST_F(RulesTest, ReadOnlyMemoryIsNotWritten) {
  auto work = stream::make(in_context()).value();
  host_pages pages(4096);
  void* begin = pages.bytes().data();
  ASSERT_EQ(home->raw(api().MemHostRegister, begin, size_t{4096}, host_register_read_only), status::success);
  EXPECT_EQ(copy(pages.address(), pages.address() + 2048, 100, work), status::invalid_value);
  EXPECT_EQ(home->raw(api().MemHostUnregister, begin), status::success);
  work.reset();
  expect_broken({"cuMemcpyAsync: writes to memory that is registered as read-only"});
}

TEST_F(RulesTest, WhatIsMappedForReadingIsRegisteredForReading) {
  in_context();
  void* begin = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(begin, MAP_FAILED);
  EXPECT_EQ(home->raw(api().MemHostRegister, begin, size_t{8192}, host_register_portable),
            status::invalid_value);
  EXPECT_EQ(home->raw(api().MemHostRegister, begin, size_t{8192}, host_register_read_only), status::success);
  auto work = stream::make(home).value();
  EXPECT_EQ(home->raw(api().StreamWriteValue32, work.get(), reinterpret_cast<device_pointer>(begin), 1u,
                      write_value_default),
            status::invalid_value);
  EXPECT_EQ(home->raw(api().MemHostUnregister, begin), status::success);
  work.reset();
  munmap(begin, 8192);
  expect_broken({"cuStreamWriteValue32: writes to memory that is registered as read-only"});
}

TEST_F(RulesTest, ReservedAddressesNeedMemoryAndAccess) {
  auto work = stream::make(in_context()).value();
  auto bytes = page_bytes(*home).value();
  auto physical = physical_memory::make(home, bytes).value();
  device_pointer address = 0;
  ASSERT_EQ(home->raw(api().MemAddressReserve, &address, size_t{bytes}, size_t{0}, device_pointer{0}, 0ull),
            status::success);
  EXPECT_EQ(copy(address, address + 4096, 100, work), status::invalid_value);
  ASSERT_EQ(home->raw(api().MemMap, address, size_t{bytes}, size_t{0}, physical.get(), 0ull),
            status::success);
  EXPECT_EQ(copy(address, address + 4096, 100, work), status::invalid_value);
  EXPECT_EQ(home->raw(api().MemAddressFree, address, size_t{bytes}), status::invalid_value);
  EXPECT_EQ(home->raw(api().MemUnmap, address, size_t{bytes}), status::success);
  EXPECT_EQ(home->raw(api().MemUnmap, address, size_t{bytes}), status::invalid_value);
  EXPECT_EQ(home->raw(api().MemAddressFree, address, size_t{bytes}), status::success);
  physical.reset();
  work.reset();
  expect_broken({"cuMemcpyAsync: reserved addresses without memory", "cuMemcpyAsync: access was not granted",
                 "cuMemAddressFree: memory is still mapped there",
                 "cuMemUnmap: nothing is mapped there as a whole"});
}

TEST_F(RulesTest, MembersOfABatchDoNotDependOnEachOther) {
  auto work = stream::make(in_context()).value();
  auto memory = allocation::make(home, 4096).value();
  auto base = memory.get().address;
  device_pointer to[] = {base + 1000, base + 2000}, from[] = {base, base + 1050};
  size_t sizes[] = {100, 100}, begin = 0;
  copy_attributes attributes;
  EXPECT_EQ(home->raw(api().MemcpyBatchAsync, &to[0], &from[0], &sizes[0], size_t{2}, &attributes, &begin,
                      size_t{1}, work.get()),
            status::success);
  EXPECT_TRUE(work.synchronize());
  memory.reset();
  work.reset();
  expect_broken({"cuMemcpyBatchAsync: members that depend on each other"});
}

TEST_F(RulesTest, HostFunctionsDoNotCallTheDriver) {
  auto work = stream::make(in_context()).value();
  struct {
    const functions* api;
    status answer = status::success;
  } inside{&api()};
  ASSERT_EQ(home->raw(
                api().LaunchHostFunc, work.get(),
                +[](void* argument) {
                  auto& given = *static_cast<decltype(inside)*>(argument);
                  int count = 0;
                  given.answer = given.api->DeviceGetCount(&count);
                },
                static_cast<void*>(&inside)),
            status::success);
  EXPECT_TRUE(work.synchronize());
  EXPECT_EQ(inside.answer, status::not_permitted);
  work.reset();
  expect_broken({"cuDeviceGetCount: called by a host function"});
}

TEST_F(RulesTest, ContextsEndAfterWhatIsInThem) {
  auto work = stream::make(in_context()).value();
  auto memory = allocation::make(home, 4096).value();
  EXPECT_EQ(api().DevicePrimaryCtxRelease(0), status::success);
  EXPECT_EQ(sim.broken_rules(), (std::vector<std::string>{"a stream was left in a context that ended",
                                                          "memory was left in a context that ended"}));
  EXPECT_EQ(sim.live(), 2u);
  home = nullptr;
  memory.reset();
  work.reset(); // its context has ended: this breaks more rules
  sim.reset(2, 64 << 20, 1);
}

TEST_F(RulesTest, DeviceMemoryCannotBeReadByTheProcessor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto memory = allocation::make(in_context(), 4096).value();
  EXPECT_DEATH(
      {
        auto* byte = reinterpret_cast<volatile char*>(memory.get().address);
        _exit(*byte == 0 ? 0 : 1);
      },
      "");
}

TEST_F(RulesTest, FailuresAreInjectedWhereTheyAreWanted) {
  in_context();
  sim.fail("cuMemAlloc", status::invalid_handle, 1, 2);
  std::vector<status> seen;
  for (int i = 0; i < 4; ++i) {
    device_pointer address = 0;
    seen.push_back(home->raw(api().MemAlloc, &address, size_t{4096}));
    if (seen.back() == status::success) {
      ASSERT_EQ(home->raw(api().MemFree, address), status::success);
    }
  }
  EXPECT_EQ(seen,
            (std::vector{status::success, status::invalid_handle, status::invalid_handle, status::success}));
  EXPECT_EQ(sim.calls("cuMemAlloc"), 4u);
}

TEST_F(RulesTest, ALostContextAnswersNothingElse) {
  lost = true;
  auto work = stream::make(in_context()).value();
  auto memory = allocation::make(home, 8192).value();
  std::atomic<bool> called = false;
  auto call_back = [&] {
    return home->raw(
        api().LaunchHostFunc, work.get(),
        +[](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, static_cast<void*>(&called));
  };
  sim.hold_streams();
  sim.fail_execution(status::ecc_uncorrectable);
  ASSERT_EQ(copy(memory.get().address, memory.get().address + 4096, 4096, work), status::success);
  ASSERT_EQ(call_back(), status::success);
  sim.release();
  auto ended = work.synchronize();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error(), (error{errc::gone, "cuStreamSynchronize: CUDA_ERROR_ECC_UNCORRECTABLE"}));
  EXPECT_EQ(call_back(), status::ecc_uncorrectable);
  EXPECT_EQ(allocation::make(home, 4096).error().code, errc::gone);
  EXPECT_FALSE(called) << "host functions are not called after an error";
}

TEST_F(RulesTest, CallsHangUntilTheyAreReleased) {
  auto work = stream::make(in_context()).value();
  sim.hang("cuStreamSynchronize");
  auto hangs = std::async(std::launch::async, [&] { return work.synchronize(); });
  while (sim.hanging() == 0)
    std::this_thread::yield();
  EXPECT_EQ(work.idle(), true) << "other calls go on";
  sim.release();
  EXPECT_TRUE(hangs.get());
}

} // namespace
} // namespace terrace::cuda
