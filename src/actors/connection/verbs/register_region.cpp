// register_region: client memory that the daemon may copy from and into, of the host or of a device.
#include "actors/connection/verbs.hpp"
#include "actors/gpu/daemon/device_actor.hpp"

#include <algorithm>
#include <cstddef>
#include <fcntl.h>

namespace terrace::actors::verbs {

namespace {

/// Of a device's memory the region that its process has imported.
task<device_memory_ptr> imported(client_request& request, const wire::RegisterRegion& asked,
                                 std::shared_ptr<unique_fd> memory) {
  import_region_request wanted;
  wanted.bytes = asked.bytes();
  wanted.context = request.context;
  wanted.page = asked.kind() == wire::RegionKind::generations;
  wanted.events = asked.events();
  if (wanted.page) {
    wanted.descriptor = std::make_shared<unique_fd>(::fcntl(memory->get(), F_DUPFD_CLOEXEC, 0));
    error none{errc::busy, "the daemon has no descriptors left"};
    if (!*wanted.descriptor) {
      co_await request.valid(none);
    }
  } else if (asked.kind() == wire::RegionKind::cuda_ipc) { // a vector of this size: bounds.cpp
    std::transform(asked.handle()->begin(), asked.handle()->end(), wanted.handle.begin(),
                   [](uint8_t byte) { return static_cast<std::byte>(byte); });
  } else {
    wanted.descriptor = std::move(memory);
  }
  const auto& devices = request.client.environment().devices;
  open_device_request open{asked.device()->str()};
  auto opened = co_await request.ask<open_device_answer>(devices, std::move(open),
                                                         "the actor of the devices has ended");
  co_await request.valid(opened.failure);
  auto answer = co_await request.ask<import_region_answer>(opened.device, std::move(wanted),
                                                           "the device's actor has ended");
  co_await request.valid(answer.failure);
  co_return std::move(answer.memory);
}

/// The descriptor's memory, mapped here. `page`: the same memory, as a device has it; null: none has.
task<client_region_ptr> mapped(client_request& request, uint64_t bytes, std::shared_ptr<unique_fd> memory,
                               device_memory_ptr page) {
  connected_client& client = request.client;
  auto charge = client.regions()->take(bytes);
  if (!charge && charge.error().code == errc::busy) { // regions that are being unmapped give their bytes back
    co_await request.unmapped("the region was mapped");
    charge = client.regions()->take(bytes);
  }
  co_await request.valid(charge);
  auto region = client_region::open(
      std::move(*memory), bytes,
      {std::move(*charge), client.environment().teardown, client.environment().populator, std::move(page)});
  co_await request.valid(region);
  co_return std::move(*region);
}

} // namespace

task<> register_region(client_request& request, const wire::RegisterRegion& asked,
                       protocol::descriptor_list& descriptors) {
  connected_client& client = request.client;
  std::shared_ptr<unique_fd> memory(new unique_fd(std::move(descriptors[0])),
                                    deleted_by{client.environment().teardown});
  client_region_ptr region;
  uint64_t bytes = asked.bytes();
  device_memory_ptr on_device;
  if (asked.kind() != wire::RegionKind::memfd) {
    if (!client.environment().devices) {
      request.refuse({errc::unsupported, "this daemon serves no devices; register a memfd"});
      co_return;
    }
    on_device = co_await imported(request, asked, memory);
  }
  // A page of generations is mapped twice: by the device's process, and here as any memfd.
  if (asked.kind() == wire::RegionKind::memfd || asked.kind() == wire::RegionKind::generations) {
    region = co_await mapped(request, bytes, memory, on_device);
  } else { // it is mapped by the process of the device, so it is charged for as long as it is registered
    auto charge = client.regions()->take(bytes);
    co_await request.valid(charge);
    region = client_region::of_device(on_device, bytes, {std::move(*charge), nullptr, {}, {}});
  }
  bool is_mapped = region->mapped();
  auto device = region->device();
  auto page = region->page();
  auto id = client.holdings().regions().add(std::move(region));
  client.show();
  co_await request.valid(id);
  if (page)
    page->give_events();
  if (device)
    request.actor.watch_device_memory(device);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRegisterRegionAnswer(body, static_cast<uint32_t>(*id), is_mapped);
  });
}

// unregister_region: the daemon releases the client's memory once the transfers in flight are done.

task<> unregister_region(client_request& request, const wire::UnregisterRegion& asked,
                         protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto region = co_await request.region_of(asked);
  client.holdings().regions().remove(static_cast<region_id>(asked.region()));
  request.actor.end_waits_in(*region);
  client.show();
  device_memory_ptr on_device = region->device() ? region->device() : region->page();
  if (on_device) {
    on_device->events_closed(); // as the client says by this request
    // Afterwards the client may free its memory, so it waits for the device, unless that has ended. The device answers when
    // nobody has the region any more.
    const auto device = region_of(*on_device).device();
    end_region_request ending{region_of(*on_device).id()};
    on_device = nullptr;
    region = nullptr;
    co_await request.try_ask<end_region_answer>(device, std::move(ending), "the device's actor has ended");
  }
  request.reply(wire::CreateUnregisterRegionAnswer);
}

// map_segment: a descriptor of an arena segment, or of the connection's staging memory, to be mapped by the
// client.

task<> map_segment(client_request& request, const wire::MapSegment& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_map("load and store with a region");
  const arena* memory = nullptr;
  std::shared_ptr<const arena> mapped;
  if (asked.segment() == staging_segment) {
    auto staging = client.staging_memory();
    co_await request.valid(staging);
    memory = &(*staging)->memory();
  } else if (mapped = client.group().memory->lend(asked.segment()); mapped) {
    client.holdings().keep_segment(asked.segment(), mapped);
    memory = mapped.get();
  } else {
    uint32_t numbered = client.group().memory->segments();
    request.refuse({errc::not_found, "there is no segment " + std::to_string(asked.segment()) +
                                         (asked.segment() < numbered ? " any more" : "") +
                                         "; the arena has numbered " + std::to_string(numbered)});
    co_return;
  }
  auto descriptor = memory->duplicate();
  co_await request.valid(descriptor);
  std::vector<unique_fd> descriptors;
  descriptors.push_back(std::move(*descriptor));
  request.reply(
      [&](flatbuffers::FlatBufferBuilder& body) {
        return wire::CreateMapSegmentAnswer(body, asked.segment(), memory->size(),
                                            memory->client_may_write());
      },
      std::move(descriptors));
}

} // namespace terrace::actors::verbs
