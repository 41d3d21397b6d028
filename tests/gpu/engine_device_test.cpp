// The class of libterrace for an engine's own GPU, on the simulated driver or a real one.
#include "client/engine_device.hpp"

#include "driver_fixture.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::cuda {
namespace {

using client::device_run;
using client::engine_device;

class EngineDevice : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    auto all = loaded->devices();
    ASSERT_TRUE(all);
    uuid = to_text(all->front().uuid);
  }
  /// Opens it with the kernel; the simulated driver uses a twin of the kernel, and any image will do.
  result<std::unique_ptr<engine_device>> opened() {
    client::engine_device_options options{.device = uuid, .driver = driver_library(), .kernel = {}};
    static constexpr std::byte any[64] = {};
    if (!on_real_driver())
      options.kernel = any;
    return engine_device::open(options);
  }
  void copy(device_pointer to, device_pointer from, uint64_t bytes, const stream& on) {
    ASSERT_TRUE(
        in_context()->call("cuMemcpyAsync", in_context()->api().MemcpyAsync, to, from, bytes, on.get()));
  }

  std::string uuid;
};

TEST_F(EngineDevice, GathersPiecesAndScattersThem) {
  if (on_real_driver() && gpu::kernel_image().empty())
    GTEST_SKIP() << "built without kernels";
  auto gpu = opened();
  ASSERT_TRUE(gpu) << gpu.error().text;
  EXPECT_TRUE((*gpu)->prefers_kernel(4096));
  EXPECT_FALSE((*gpu)->prefers_kernel(1 << 20));
  constexpr uint64_t bytes = 1 << 20;
  auto blocks = allocation::make(in_context(), bytes).value();
  auto buffer = allocation::make(in_context(), bytes).value();
  auto back = allocation::make(in_context(), bytes).value();
  host_pages pages(2 * bytes);
  auto pinned = registration::make(in_context(), pages.bytes()).value();
  auto work = stream::make(in_context()).value();
  fill(pages.bytes().first(bytes), 1);
  std::memset(pages.bytes().data() + bytes, 0, bytes);
  copy(blocks.get().address, pages.address(), bytes, work);
  copy(back.get().address, pages.address() + bytes, bytes, work);
  // More runs than a launch has, of many sizes, at odd places.
  std::vector<device_run> from, to;
  std::vector<std::byte> expected;
  for (uint64_t i = 0; i < 200; ++i) {
    device_run run{.address = blocks.get().address + i * 5000,
                   .bytes = 1 + i * 3,
                   .stride = 700 + i,
                   .count = 1 + i % 5};
    from.push_back(run);
    to.push_back(run);
    to.back().address = back.get().address + i * 5000;
    for (uint64_t piece = 0; piece < run.count; ++piece)
      for (uint64_t at = 0; at < run.bytes; ++at)
        expected.push_back(pattern(1, i * 5000 + piece * run.stride + at));
  }
  ASSERT_TRUE((*gpu)->gather(work.get(), from, buffer.get().address));
  ASSERT_TRUE((*gpu)->scatter(work.get(), to, buffer.get().address));
  copy(pages.address(), buffer.get().address, bytes, work);
  copy(pages.address() + bytes, back.get().address, bytes, work);
  ASSERT_TRUE(work.synchronize());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pages.bytes().begin()));
  std::vector<std::byte> scattered(bytes);
  for (const device_run& run : from)
    for (uint64_t piece = 0; piece < run.count; ++piece)
      for (uint64_t at = 0; at < run.bytes; ++at) {
        uint64_t place = run.address - blocks.get().address + piece * run.stride + at;
        scattered[place] = pattern(1, place);
      }
  EXPECT_TRUE(std::equal(scattered.begin(), scattered.end(), pages.bytes().begin() + bytes));
  std::vector<device_run> empty{{.address = blocks.get().address, .bytes = 0}};
  EXPECT_FALSE((*gpu)->gather(work.get(), empty, buffer.get().address));
}

TEST_F(EngineDevice, StreamsWaitForCountersAndWriteThem) {
  auto gpu = opened();
  ASSERT_TRUE(gpu) << gpu.error().text;
  auto memory = client::region::create("counters", 4096).value();
  auto work = stream::make(in_context()).value();
  EXPECT_FALSE((*gpu)->wait(work.get(), {0, 1})) << "nothing is attached";
  ASSERT_TRUE((*gpu)->attach(memory));
  EXPECT_FALSE((*gpu)->attach(memory));
  EXPECT_FALSE((*gpu)->write(work.get(), {4096, 1}));
  EXPECT_FALSE((*gpu)->write(work.get(), {2, 1}));
  auto* words = reinterpret_cast<uint32_t*>(memory.data());
  ASSERT_TRUE((*gpu)->wait(work.get(), {4, 7}));
  ASSERT_TRUE((*gpu)->write(work.get(), {8, 9}));
  EXPECT_FALSE(work.idle().value());
  std::atomic_ref(words[1]).store(6, std::memory_order_release); // not yet
  EXPECT_EQ(std::atomic_ref(words[2]).load(), 0U);
  std::atomic_ref(words[1]).store(7, std::memory_order_release);
  ASSERT_TRUE(work.synchronize());
  EXPECT_EQ(std::atomic_ref(words[2]).load(), 9U);
}

TEST_F(EngineDevice, StreamsRingABellBehindWhatTheyHaveWritten) {
  auto gpu = opened();
  ASSERT_TRUE(gpu) << gpu.error().text;
  auto memory = client::region::create("counters", 4096).value();
  ASSERT_TRUE((*gpu)->attach(memory));
  auto* words = reinterpret_cast<uint32_t*>(memory.data());
  auto work = stream::make(in_context()).value();
  unique_fd event(::eventfd(0, EFD_CLOEXEC)), heard(::fcntl(event.get(), F_DUPFD_CLOEXEC, 0));
  int its_number = event.get();
  {
    client::bell bell(std::move(event));
    ASSERT_TRUE((*gpu)->wait(work.get(), {4, 1}));
    ASSERT_TRUE((*gpu)->write(work.get(), {8, 9}));
    ASSERT_TRUE((*gpu)->ring(work.get(), bell));
    ASSERT_TRUE((*gpu)->ring(work.get(), bell));
  }
  EXPECT_NE(::fcntl(its_number, F_GETFD), -1) << "it stays open until the stream has rung it";
  pollfd ready{heard.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  std::atomic_ref(words[1]).store(1, std::memory_order_release);
  uint64_t rings = 0;
  ASSERT_EQ(::read(heard.get(), &rings, sizeof rings), 8);
  EXPECT_EQ(std::atomic_ref(words[2]).load(std::memory_order_acquire), 9U) << "it rang before the counter";
  ASSERT_TRUE(work.synchronize());
  EXPECT_EQ(::fcntl(its_number, F_GETFD), -1);
}

TEST_F(EngineDevice, SaysWhatIsMissing) {
  auto code_of = [](const client::engine_device_options& options) {
    auto gpu = engine_device::open(options);
    return gpu ? errc::ok : gpu.error().code;
  };
  EXPECT_EQ(code_of({.device = uuid, .driver = "libnone.so.1"}), errc::unsupported);
  EXPECT_EQ(code_of({.device = "host", .driver = driver_library()}), errc::bad_request);
  EXPECT_EQ(code_of({.device = "GPU-00000000-0000-0000-0000-000000000000", .driver = driver_library()}),
            errc::not_found);
  if (!gpu::kernel_image().empty())
    return;
  auto gpu = engine_device::open({.device = uuid, .driver = driver_library()});
  ASSERT_TRUE(gpu) << gpu.error().text;
  EXPECT_FALSE((*gpu)->has_kernel());
  EXPECT_FALSE((*gpu)->prefers_kernel(1));
  std::vector<device_run> one{{.address = 1, .bytes = 1}};
  auto gathered = (*gpu)->gather(nullptr, one, 1);
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, errc::unsupported);
}

TEST_F(EngineDevice, ErrorsOfTheDriverAreReported) {
  SKIP_ON_REAL_DRIVER();
  for (const char* function : {"cuModuleLoadData", "cuModuleGetFunction"}) {
    sim.fail(function, status::out_of_memory, 0, 1);
    EXPECT_FALSE(opened()) << function;
  }
  auto gpu = opened();
  ASSERT_TRUE(gpu);
  auto memory = client::region::create("counters", 4096).value();
  sim.fail("cuMemHostRegister", status::out_of_memory, 0, 1);
  EXPECT_FALSE((*gpu)->attach(memory));
  ASSERT_TRUE((*gpu)->attach(memory));
  auto work = stream::make(in_context()).value();
  unique_fd event(::eventfd(0, EFD_CLOEXEC));
  int its_number = event.get();
  sim.fail("cuLaunchHostFunc", status::out_of_memory, 0, 1);
  EXPECT_FALSE((*gpu)->ring(work.get(), client::bell(std::move(event))));
  EXPECT_EQ(::fcntl(its_number, F_GETFD), -1) << "a bell that nobody rings is closed";
  auto blocks = allocation::make(in_context(), 4096).value();
  sim.fail("cuLaunchKernel", status::out_of_memory, 0, 1);
  std::vector<device_run> one{{.address = blocks.get().address, .bytes = 16}};
  EXPECT_FALSE((*gpu)->gather(work.get(), one, blocks.get().address + 1024));
}

} // namespace
} // namespace terrace::cuda
