// unregister_region: the daemon releases the client's memory once the transfers in flight are done.
#include "actors/connection/verbs.hpp"
#include "actors/gpu/daemon/device_actor.hpp"

namespace terrace::actors::verbs {

void unregister_region(connection& client, const connection::request& what,
                       const wire::UnregisterRegion& asked, protocol::descriptor_list&) {
  auto region = client.find_region(what, asked.region());
  if (!region)
    return;
  client.holdings().remove(static_cast<region_id>(asked.region()));
  client.end_waits_in(*region);
  client.show();
  const device_memory_ptr& on_device = region->device() ? region->device() : region->page();
  if (!on_device) {
    client.reply(what, wire::CreateUnregisterRegionAnswer);
    return;
  }
  on_device->events_closed(); // as the client says by this request
  // Afterwards the client may free its memory, so it waits for the device.
  const auto& memory = region_of(*on_device);
  auto reply = [&client, what] { client.reply(what, wire::CreateUnregisterRegionAnswer); };
  client.ask(memory.device(), end_region_request{memory.id()},
             client.guarded(what, [reply](const end_region_answer&) { reply(); }), reply);
}

} // namespace terrace::actors::verbs
