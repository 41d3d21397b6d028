// Pages of generations with events: one process records them, and another waits for them.
#include "conformance/conformance_fixture.hpp"
#include "driver_fixture.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "peer.hpp"

#include <poll.h>

#include <cstring>

namespace terrace::gpu {
namespace {

using cuda::driver_library;
using cuda::on_real_driver;

constexpr uint32_t layers = 4;
constexpr uint64_t layer_bytes = 256 << 10;
constexpr uint32_t page_slots = 1024;

/// The handles are at the end of the page.
cuda::ipc_event_handle handle_in(const generation_page& page, uint32_t slot) {
  cuda::ipc_event_handle handle;
  std::memcpy(&handle, page.memory().data() + page.memory().size() - (layers - slot) * sizeof handle,
              sizeof handle);
  return handle;
}

// Reads each layer once its event is done. Reports the layers' patterns: a digit each, 9 for none of the patterns.
const peer_role reads_layers("reads layers", [](peer_socket& socket) -> std::string {
  auto memory_handle = socket.receive_value<cuda::ipc_memory_handle>();
  unique_fd descriptor;
  bool waits = socket.receive(&descriptor) == "waits for the record";
  auto page = generation_page::open(std::move(descriptor)).value();
  auto home = cuda::context::retain(cuda::driver::open(driver_library()).value(), 0).value();
  auto memory = cuda::ipc_import::open(home, *memory_handle).value();
  auto work = cuda::stream::make(home).value();
  cuda::host_pages pages(layer_bytes);
  auto pinned = cuda::registration::make(home, pages.bytes()).value();
  std::vector<cuda::event> events;
  for (uint32_t slot = 0; slot < layers; ++slot)
    events.push_back(cuda::event::open(home, handle_in(page, slot)).value());
  socket.send("open");
  std::string found;
  for (uint32_t slot = 0; slot < layers; ++slot) {
    if (waits)
      page.wait({slot, 1});
    if (!events[slot].block(work) ||
        !home->call("", home->api().MemcpyAsync, pinned.address(), memory.get().address + slot * layer_bytes,
                    size_t{layer_bytes}, work.get()) ||
        !work.synchronize())
      return "cannot read";
    found += cuda::has_pattern(pages.bytes(), 1) ? '1' : cuda::has_pattern(pages.bytes(), 2) ? '2' : '9';
  }
  socket.send(found);
  return {};
});

class EventPage : public cuda::DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    dev = make_cuda_device(loaded, loaded->devices().value().front().uuid).value();
    region = dev->allocate(layers * layer_bytes).value();
    pages = make_pages(layers * layer_bytes);
    objects = dev->pin(pages).value();
    page = std::make_shared<const generation_page>(generation_page::make(page_slots).value());
    stream = copy_stream::open(dev, direction::load).value();
    load(1, nullptr);
    take(1);
  }
  void TearDown() override {
    sim_release();
    stream = nullptr;
    events = nullptr;
    objects = region = nullptr;
    dev = nullptr;
    DriverTest::TearDown();
  }
  void sim_release() {
    if (!on_real_driver())
      sim.release();
  }
  /// Loads all layers with the pattern of that number; signals a generation for each if there is a page.
  void load(uint64_t number, std::shared_ptr<attached_page> in) {
    for (uint32_t i = 0; i < layers; ++i)
      cuda::fill(pages->bytes().subspan(i * layer_bytes, layer_bytes), number);
    copy_request request;
    request.id = number;
    request.region = region;
    request.object = objects;
    request.page = in;
    for (uint32_t i = 0; i < layers; ++i) {
      copy_part part{{{i * layer_bytes, i * layer_bytes, layer_bytes, 0, 0, 1}}, {}};
      if (in)
        part.signal = generation{i, 1};
      request.parts.push_back(std::move(part));
    }
    ASSERT_TRUE(stream->submit(std::move(request)));
  }
  completion take(uint64_t id) {
    for (;;) {
      pollfd ready{stream->descriptor(), POLLIN, 0};
      ::poll(&ready, 1, -1);
      for (auto& each : stream->drain())
        if (each.id == id)
          return each;
    }
  }
  bool attach() {
    auto made = dev->attach_with_events(page, layers);
    EXPECT_TRUE(made) << made.error().text;
    if (made)
      events = *made;
    return static_cast<bool>(made);
  }
  void start(peer_process& peer, const char* how) {
    auto shared = region->share().value();
    ASSERT_TRUE(peer.socket().send(shared.ipc));
    ASSERT_TRUE(peer.socket().send(std::as_bytes(std::span(how, std::strlen(how))), page->descriptor()));
    ASSERT_EQ(peer.socket().receive(), "open");
  }

  std::shared_ptr<device> dev;
  std::shared_ptr<memory> region, objects;
  std::shared_ptr<const mapping> pages;
  std::shared_ptr<const generation_page> page;
  std::shared_ptr<attached_page> events;
  std::unique_ptr<copy_stream> stream;
};

TEST_F(EventPage, AnotherProcessReadsLayersWhenTheirEventsAreDone) {
  ASSERT_TRUE(attach());
  peer_process peer("reads layers");
  start(peer, "waits for the record");
  load(2, events);
  EXPECT_FALSE(take(2).failure);
  EXPECT_EQ(peer.socket().receive(), "2222");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(EventPage, WithoutTheGenerationItReadsOldBytes) {
  ASSERT_TRUE(attach());
  peer_process peer("reads layers");
  start(peer, "waits for the event alone");
  EXPECT_EQ(peer.socket().receive(), "1111");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(EventPage, TheGenerationSaysThatTheEventWasRecorded) {
  SKIP_ON_REAL_DRIVER(); // its streams cannot be held
  ASSERT_TRUE(attach());
  sim.hold_streams();
  load(2, events);
  for (uint32_t i = 0; i < layers; ++i)
    EXPECT_EQ(page->value(i), 1U) << "before the bytes";
  peer_process peer("reads layers");
  start(peer, "waits for the record");
  sim.release();
  EXPECT_EQ(peer.socket().receive(), "2222");
  EXPECT_EQ(peer.wait(), 0);
  EXPECT_FALSE(take(2).failure);
}

TEST_F(EventPage, AFailedPartRecordsNothing) {
  SKIP_ON_REAL_DRIVER();
  ASSERT_TRUE(attach());
  sim.fail("cuEventRecord", cuda::status::invalid_value, 1, 1); // fails the record of the second layer
  load(2, events);
  auto end = take(2);
  EXPECT_TRUE(end.failure);
  EXPECT_EQ(end.parts_done, 1U);
  EXPECT_EQ(page->value(0), 1U);
  for (uint32_t i = 1; i < layers; ++i)
    EXPECT_EQ(page->value(i), 0U);
}

TEST_F(EventPage, AStreamCannotWaitForAGeneration) {
  ASSERT_TRUE(attach());
  copy_request request;
  request.id = 2;
  request.region = region;
  request.object = objects;
  request.page = events;
  request.await = generation{0, 1};
  request.parts.push_back({{{0, 0, 4096, 0, 0, 1}}, {}});
  ASSERT_TRUE(stream->submit(std::move(request)));
  auto end = take(2);
  ASSERT_TRUE(end.failure);
  EXPECT_EQ(end.failure->code, errc::unsupported);
}

TEST_F(EventPage, EveryRefusalOfTheDriverIsAnError) {
  SKIP_ON_REAL_DRIVER();
  for (const char* function : {"cuEventCreate", "cuIpcGetEventHandle"}) {
    sim.fail(function, cuda::status::out_of_memory, 2, 1);
    auto made = dev->attach_with_events(page, layers);
    ASSERT_FALSE(made) << function;
    EXPECT_NE(made.error().text.find(function), std::string::npos) << made.error().text;
  }
}

TEST_F(EventPage, NeedsNoMemoryOperationsOfStreams) {
  SKIP_ON_REAL_DRIVER();
  sim.hide("cuStreamWriteValue32");
  auto driver = cuda::driver::open(driver_library()).value();
  auto poorer = make_cuda_device(driver, driver->devices().value().front().uuid).value();
  auto counters = poorer->attach(page);
  ASSERT_FALSE(counters);
  EXPECT_EQ(counters.error().code, errc::unsupported);
  EXPECT_TRUE(poorer->attach_with_events(page, layers));
}

} // namespace
} // namespace terrace::gpu
