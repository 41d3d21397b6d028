// unregister_region: the daemon releases the client's memory once the transfers in flight are done.
#include "actors/connection/verbs.hpp"
#include "actors/gpu/daemon/device_actor.hpp"

namespace terrace::actors::verbs {

task<> unregister_region(client_request& request, const wire::UnregisterRegion& asked,
                         protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto region = request.region(asked.region());
  if (!region)
    co_return;
  client.holdings().remove(static_cast<region_id>(asked.region()));
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

} // namespace terrace::actors::verbs
