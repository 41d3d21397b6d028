// A region is memory of an engine: another process allocates it, and the daemon's side copies into it.
#include "conformance/conformance_fixture.hpp"
#include "peer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace terrace::gpu {
namespace {

/// The bytes that go over the socket beside a descriptor.
struct sent_handle {
  memory_handle::kind_t kind;
  std::array<std::byte, 64> ipc;
  uint64_t bytes;
};

constexpr uint64_t shared_bytes = 1 << 16;

/// The other side: imports the region, checks its pattern 1, and loads pattern 2 into it.
std::string import_and_load(const std::string& device_name, peer_socket& socket) {
  unique_fd descriptor;
  auto bytes = socket.receive(&descriptor);
  sent_handle sent;
  if (bytes.size() != sizeof sent)
    return "no handle";
  std::memcpy(static_cast<void*>(&sent), bytes.data(), sizeof sent);
  auto tested = make_device_under_test(device_name, 1);
  auto opened = tested->open();
  if (!opened)
    return opened.error().text;
  auto dev = std::move(*opened);
  memory_handle handle{sent.kind, std::move(descriptor), sent.ipc, sent.bytes};
  auto region = dev->import(std::move(handle));
  if (!region)
    return region.error().text;
  if ((*region)->bytes() != shared_bytes)
    return "the region has " + std::to_string((*region)->bytes()) + " bytes";
  auto pages = make_pages(shared_bytes);
  auto object = dev->pin(pages).value();
  for (auto way : {direction::store, direction::load}) {
    test_stream stream(dev, way);
    copy_request whole;
    whole.id = 1;
    whole.region = *region;
    whole.object = object;
    whole.parts = {{{{0, 0, shared_bytes, 0, 0, 1}}, {}}};
    if (!stream.stream->submit(std::move(whole)) || stream.wait(1).failure)
      return "the copy failed";
    if (way == direction::store) {
      if (!cuda::has_pattern(pages->bytes(), 1))
        return "the region has other bytes";
      cuda::fill(pages->bytes(), 2);
    }
  }
  region->reset();
  socket.send("done");
  std::string broken;
  for (const auto& rule : tested->broken_rules())
    broken += rule + "; ";
  return broken;
}

const std::vector<std::unique_ptr<peer_role>> roles = [] {
  std::vector<std::unique_ptr<peer_role>> all;
  for (const auto& name : device_names())
    all.push_back(std::make_unique<peer_role>(
        ("loads on " + name).c_str(), [name](peer_socket& socket) { return import_and_load(name, socket); }));
  return all;
}();

using ShareConformance = DeviceConformance;

TEST_P(ShareConformance, AnotherProcessLoadsIntoOurRegion) {
  auto shared = dev->allocate(shared_bytes).value();
  auto copy = [&](direction way) {
    test_stream stream(dev, way);
    auto whole = simple(1, 0, 0, shared_bytes);
    whole.region = shared;
    ASSERT_TRUE(stream.stream->submit(std::move(whole)));
    ASSERT_FALSE(stream.wait(1).failure);
  };
  cuda::fill(objects().first(shared_bytes), 1);
  copy(direction::load);
  peer_process peer(("loads on " + GetParam()).c_str());
  auto handle = shared->share().value();
  sent_handle sent{handle.kind, handle.ipc, handle.bytes};
  ASSERT_TRUE(peer.socket().send(std::as_bytes(std::span(&sent, 1)), handle.descriptor.get()));
  EXPECT_EQ(peer.socket().receive(), "done");
  EXPECT_EQ(peer.wait(), 0);
  copy(direction::store);
  EXPECT_TRUE(cuda::has_pattern(objects().first(shared_bytes), 2));
}

TEST_P(ShareConformance, HandlesAreNotBelieved) {
  auto shared = dev->allocate(shared_bytes).value();
  {
    auto handle = shared->share().value();
    handle.bytes = 0;
    EXPECT_FALSE(dev->import(std::move(handle)));
  }
  if (shared->share().value().kind == memory_handle::kind_t::descriptor) {
    auto handle = shared->share().value();
    handle.bytes = 64 << 20;
    EXPECT_FALSE(dev->import(std::move(handle))) << "more than there is";
  }
  memory_handle nonsense;
  nonsense.kind = memory_handle::kind_t::ipc;
  nonsense.bytes = 4096;
  EXPECT_FALSE(dev->import(std::move(nonsense)));
  memory_handle closed;
  closed.bytes = 4096;
  if (tested->has_controls()) {
    EXPECT_FALSE(dev->import(std::move(closed)));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ShareConformance, testing::ValuesIn(device_names()),
                         [](const auto& one) { return one.param; });

TEST(HostDevice, DoesNotMapWhatCanShrink) {
  auto dev = make_host_device().value();
  memory_handle handle;
  handle.descriptor.reset(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(handle.descriptor.get(), 4096), 0);
  handle.bytes = 4096;
  auto answer = dev->import(std::move(handle));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::denied);
}

} // namespace
} // namespace terrace::gpu
