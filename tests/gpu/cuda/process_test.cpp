// Memory and events between processes: by legacy handles and by descriptors.
#include "driver_fixture.hpp"
#include "gpu/cuda/cuda_memory.hpp"
#include "peer.hpp"

namespace terrace::cuda {
namespace {

constexpr size_t memory_bytes = 1 << 20;

std::shared_ptr<const context> open_context() {
  return context::retain(driver::open(driver_library()).value(), 0).value();
}

std::string broken_rules_of_peer() {
  std::string all;
  if (!on_real_driver())
    for (const auto& rule : simulation().broken_rules())
      all += rule + "; ";
  return all;
}

/// Checks that the device's bytes at `address` have pattern `expected`, and fills them with pattern `wanted`.
std::string check_and_fill(const std::shared_ptr<const context>& home, device_pointer address, size_t bytes,
                           uint64_t expected, uint64_t wanted) {
  host_pages pages(bytes);
  auto pinned = registration::make(home, pages.bytes()).value();
  auto work = stream::make(home).value();
  const auto& api = home->api();
  if (!home->call("", api.MemcpyAsync, pinned.address(), address, bytes, work.get()) || !work.synchronize())
    return "cannot read";
  if (auto same = has_pattern(pages.bytes(), expected); !same)
    return same.message();
  fill(pages.bytes(), wanted);
  if (!home->call("", api.MemcpyAsync, address, pinned.address(), bytes, work.get()) || !work.synchronize())
    return "cannot write";
  return {};
}

const peer_role imports_memory("imports memory", [](peer_socket& socket) -> std::string {
  auto handle = socket.receive_value<ipc_memory_handle>();
  if (!handle)
    return "no handle";
  auto home = open_context();
  {
    auto import = ipc_import::open(home, *handle);
    if (!import)
      return import.error().text;
    if (import->get().bytes < memory_bytes)
      return "the import has " + std::to_string(import->get().bytes) + " bytes";
    auto again = ipc_import::open(home, *handle); // opens are counted
    if (!again || again->get().address != import->get().address)
      return "opened twice, it lies in two places";
    again->reset();
    if (auto wrong = check_and_fill(home, import->get().address, memory_bytes, 1, 2); !wrong.empty())
      return wrong;
    socket.send("done");
    socket.receive(); // until the other side is ready for the close
  }
  socket.send("closed");
  return broken_rules_of_peer();
});

const peer_role opens_what_is_gone("opens what is gone", [](peer_socket& socket) -> std::string {
  auto memory = socket.receive_value<ipc_memory_handle>();
  auto event_handle = socket.receive_value<ipc_event_handle>();
  auto home = open_context();
  if (ipc_import::open(home, *memory) || event::open(home, *event_handle))
    return "it could be opened";
  return {};
});

const peer_role imports_descriptor("imports a descriptor", [](peer_socket& socket) -> std::string {
  unique_fd descriptor;
  auto size = socket.receive(&descriptor);
  auto home = open_context();
  auto physical = physical_memory::open(home, descriptor.get());
  if (!physical)
    return physical.error().text;
  descriptor.reset();
  auto bytes = std::stoull(size);
  auto memory = virtual_memory::make(std::move(*physical), bytes);
  if (!memory)
    return memory.error().text;
  if (auto wrong = check_and_fill(home, memory->range().address, bytes, 1, 2); !wrong.empty())
    return wrong;
  socket.send("done");
  return broken_rules_of_peer();
});

const peer_role waits_for_event("waits for an event", [](peer_socket& socket) -> std::string {
  auto handle = socket.receive_value<ipc_event_handle>();
  auto home = open_context();
  auto work = stream::make(home).value();
  auto event = event::open(home, *handle);
  if (!event)
    return event.error().text;
  if (!event->block(work) || !work.synchronize())
    return "a wait for what was never recorded waits";
  socket.send("waits for nothing");
  socket.receive(); // now it is recorded, and not done
  if (!event->block(work))
    return "cannot wait";
  if (!on_real_driver() && work.idle() != false)
    return "the wait did not wait";
  socket.send("waits");
  return work.synchronize() ? broken_rules_of_peer() : "the wait failed";
});

const peer_role keeps_event("keeps an event open", [](peer_socket& socket) -> std::string {
  auto handle = socket.receive_value<ipc_event_handle>();
  auto home = open_context();
  auto event = event::open(home, *handle);
  if (!event)
    return event.error().text;
  socket.send("open");
  socket.receive();
  return {};
});

const peer_role records("records, and the record is never reached", [](peer_socket& socket) -> std::string {
  auto home = open_context();
  auto work = stream::make(home).value();
  auto event = event::make_shared(home).value();
  socket.send_value(event.share().value());
  socket.receive(); // it is open
  simulation().hold_streams();
  if (!event.record(work))
    return "cannot record";
  socket.send("recorded");
  socket.receive(); // never comes
  return "survived";
});

const peer_role dies("dies with memory open", [](peer_socket& socket) -> std::string {
  auto handle = socket.receive_value<ipc_memory_handle>();
  auto home = open_context();
  auto import = ipc_import::open(home, *handle).value();
  socket.send("open");
  socket.receive(); // never comes
  return "survived";
});

class ProcessTest : public DriverTest {
 protected:
  /// Makes device memory with pattern 1.
  allocation filled() {
    auto memory = allocation::make(in_context(), memory_bytes).value();
    host_pages pages(memory_bytes);
    auto pinned = registration::make(home, pages.bytes()).value();
    auto work = stream::make(home).value();
    fill(pages.bytes(), 1);
    EXPECT_TRUE(home->call("", home->api().MemcpyAsync, memory.get().address, pinned.address(), memory_bytes,
                           work.get()));
    EXPECT_TRUE(work.synchronize());
    return memory;
  }
};

TEST_F(ProcessTest, AnotherProcessReadsAndWritesOurMemory) {
  auto memory = filled();
  peer_process peer("imports memory");
  ASSERT_TRUE(peer.socket().send_value(memory.share().value()));
  ASSERT_EQ(peer.socket().receive(), "done");
  EXPECT_EQ(check_and_fill(home, memory.get().address, memory_bytes, 2, 3), "");
  peer.socket().send("close");
  EXPECT_EQ(peer.socket().receive(), "closed");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ProcessTest, ExportedMemoryOutlivesItsImports) {
  SKIP_ON_REAL_DRIVER();
  auto memory = filled();
  peer_process peer("imports memory");
  ASSERT_TRUE(peer.socket().send_value(memory.share().value()));
  ASSERT_EQ(peer.socket().receive(), "done");
  memory.reset(); // too early
  peer.socket().send("close");
  EXPECT_EQ(peer.wait(), 0);
  expect_broken({"cuMemFree: another process still has it open"});
}

TEST_F(ProcessTest, ExportedEventsOutliveTheirImports) {
  SKIP_ON_REAL_DRIVER();
  auto event = event::make_shared(in_context()).value();
  peer_process peer("keeps an event open");
  ASSERT_TRUE(peer.socket().send_value(event.share().value()));
  ASSERT_EQ(peer.socket().receive(), "open");
  event.reset(); // too early
  peer.socket().send("close");
  EXPECT_EQ(peer.wait(), 0);
  expect_broken({"cuEventDestroy: another process still has it open"});
}

TEST_F(ProcessTest, AnImporterThatDiedHoldsNoEvent) {
  SKIP_ON_REAL_DRIVER();
  auto event = event::make_shared(in_context()).value();
  peer_process peer("keeps an event open");
  ASSERT_TRUE(peer.socket().send_value(event.share().value()));
  ASSERT_EQ(peer.socket().receive(), "open");
  peer.kill();
  peer.wait();
  event.reset();
}

// An H200 with driver 580 behaves like this (docs/gpu.md).
TEST_F(ProcessTest, AStreamWaitsForEverForTheRecordOfAProcessThatWasKilled) {
  SKIP_ON_REAL_DRIVER();
  auto work = stream::make(in_context()).value();
  peer_process peer("records, and the record is never reached");
  auto handle = peer.socket().receive_value<ipc_event_handle>();
  ASSERT_TRUE(handle);
  auto event = event::open(home, *handle).value();
  peer.socket().send("open");
  ASSERT_EQ(peer.socket().receive(), "recorded");
  ASSERT_TRUE(event.block(work));
  peer.kill();
  peer.wait();
  EXPECT_EQ(work.idle(), false);
  EXPECT_EQ(event.done(), false);
}

TEST_F(ProcessTest, AnImporterThatDiedHoldsNothing) {
  SKIP_ON_REAL_DRIVER();
  auto memory = filled();
  peer_process peer("dies with memory open");
  ASSERT_TRUE(peer.socket().send_value(memory.share().value()));
  ASSERT_EQ(peer.socket().receive(), "open");
  peer.kill();
  peer.wait();
  memory.reset();
}

TEST_F(ProcessTest, HandlesOfWhatIsGoneAreRefused) {
  SKIP_ON_REAL_DRIVER();
  auto memory = filled();
  auto handle = memory.share().value();
  memory.reset();
  auto event = event::make_shared(home).value();
  auto event_handle = event.share().value();
  event.reset();
  peer_process peer("opens what is gone");
  ASSERT_TRUE(peer.socket().send_value(handle));
  ASSERT_TRUE(peer.socket().send_value(event_handle));
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ProcessTest, HandlesAreForOthers) {
  SKIP_ON_REAL_DRIVER();
  auto memory = filled();
  auto event = event::make_shared(home).value();
  EXPECT_FALSE(ipc_import::open(home, memory.share().value()));
  EXPECT_FALSE(event::open(home, event.share().value()));
  EXPECT_FALSE(ipc_import::open(home, ipc_memory_handle{})) << "zeros are no handle";
  memory.reset();
  event.reset();
  expect_broken({"cuIpcOpenMemHandle: in the process that made the handle",
                 "cuIpcOpenEventHandle: in the process that made the handle"});
}

TEST_F(ProcessTest, ADescriptorCarriesMemory) {
  if (!loaded->devices().value().front().virtual_memory)
    GTEST_SKIP() << "the device has none";
  auto bytes = page_bytes(*in_context()).value();
  auto memory = virtual_memory::make(physical_memory::make(home, bytes).value(), bytes).value();
  {
    host_pages pages(bytes);
    auto pinned = registration::make(home, pages.bytes()).value();
    auto work = stream::make(home).value();
    fill(pages.bytes(), 1);
    ASSERT_TRUE(
        home->call("", home->api().MemcpyAsync, memory.range().address, pinned.address(), bytes, work.get()));
    ASSERT_TRUE(work.synchronize());
  }
  peer_process peer("imports a descriptor");
  auto size = std::to_string(bytes);
  ASSERT_TRUE(peer.socket().send(std::as_bytes(std::span(size)), memory.memory().share().value().get()));
  ASSERT_EQ(peer.socket().receive(), "done");
  EXPECT_EQ(check_and_fill(home, memory.range().address, bytes, 2, 3), "");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_F(ProcessTest, AnEventOrdersTwoProcesses) {
  auto work = stream::make(in_context()).value();
  auto event = event::make_shared(home).value();
  peer_process peer("waits for an event");
  ASSERT_TRUE(peer.socket().send_value(event.share().value()));
  ASSERT_EQ(peer.socket().receive(), "waits for nothing");
  if (!on_real_driver())
    sim.hold_streams();
  ASSERT_TRUE(event.record(work));
  peer.socket().send("recorded");
  ASSERT_EQ(peer.socket().receive(), "waits");
  if (!on_real_driver())
    sim.release();
  EXPECT_EQ(peer.wait(), 0);
}

} // namespace
} // namespace terrace::cuda
