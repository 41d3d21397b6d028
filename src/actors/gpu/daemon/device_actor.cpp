#include "actors/gpu/daemon/device_actor.hpp"

#include "actors/gpu/daemon/device_state.hpp"

#include <caf/send.hpp>

#include <cassert>

namespace terrace::actors {

namespace {

device_interface::behavior_type device_behavior(device_pointer self,
                                                const std::shared_ptr<device_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  begin_reads(self);
  return {
      [self](copy_request& request) { return on_copy(self, request); },
      [self](const import_region_request& request) { return on_import(self, request); },
      [self](const share_region_request& request) { return on_share(self, request); },
      [self](const watch_device_notice& notice) { on_watch(self, notice); },
      [self](direct_read_request& request) { return on_direct_read(self, request); },
      [self](const drop_region_notice& notice) { on_drop(self, notice); },
      [self](const end_region_request& request) { return on_end_region(self, request.region); },
      [self](const add_memory& added) { on_add_memory(self, added); },
      [self](const forget_memory& gone) { return on_forget_memory(self, gone); },
      [self](const child_started& notice) { on_child_started(self, notice); },
      [self](const runtime::io_done& done) { on_device_io(self, done); },
  };
}

} // namespace

device_region::~device_region() {
  assert(id_ != 0); // reported once
  caf::anon_send(device_, drop_region_notice{id_, opened()});
}

device_actor spawn_device(caf::actor_system& system, const runtime::home& home, device_arguments arguments) {
  return runtime::spawn_homed(system, home, device_behavior,
                              std::make_shared<device_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
