#include "actors/gpu/daemon/device_actor.hpp"

#include "base/countdown.hpp"
#include "gpu/process/device_child.hpp"
#include "runtime/answer.hpp"
#include "transfer/mover_messages.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>

namespace terrace::actors {

namespace {

/// A machine has at most 8 or 16 GPUs. Names that clients made up are forgotten to make room for others.
constexpr size_t devices_max = 32;

struct known_device {
  device_actor actor;
  std::shared_ptr<metrics::device_probe> probe;
  bool kept = false; ///< a tier is in its memory whenever it has a process
};

struct devices_state {
  const char* name = "devices";
  devices_arguments with;
  std::map<std::string, known_device> known;
  std::vector<std::shared_ptr<const arena>> memory; ///< memory that their processes may read
};
using devices_pointer = gpu_registry_actor::stateful_pointer<devices_state>;

/// Forgets a device in which nobody has memory and for which nobody waits.
bool forget_idle(devices_pointer self) {
  auto& state = self->state;
  for (auto device = state.known.begin(); device != state.known.end(); ++device) {
    auto shown = device->second.probe->show();
    if (device->second.kept || shown.pid != 0 || shown.phase == metrics::device_phase::starting)
      continue;
    self->unlink_from(device->second.actor.address());
    self->send_exit(device->second.actor, caf::exit_reason::user_shutdown);
    state.with.board->remove(device->first);
    state.with.records->leave(device->first);
    state.known.erase(device);
    return true;
  }
  return false;
}

open_device_answer on_open(devices_pointer self, const open_device_request& request) {
  auto& state = self->state;
  if (!state.with.enabled)
    return {{errc::unsupported, "gpu.enabled is false in the daemon's configuration; register a memfd"}, {}};
  auto name = gpu::canonical_device_name(request.name);
  if (!name)
    return {name.error(), {}};
  if (auto known = state.known.find(*name); known != state.known.end()) {
    known->second.kept = known->second.kept || request.keep;
    return {{}, known->second.actor};
  }
  if (state.known.size() >= devices_max && !forget_idle(self))
    return {{errc::busy, std::to_string(devices_max) + " devices are in use, as many as a daemon serves"},
            {}};
  device_arguments device = state.with.device;
  device.probe = std::make_shared<metrics::device_probe>(*name);
  device.record = state.with.records->of(*name);
  known_device made{spawn_device(self->system(), state.with.place(), device), device.probe, request.keep};
  self->link_to(made.actor); // they end together
  for (const auto& segment : state.memory)
    self->send(made.actor, add_memory{segment});
  state.with.board->add(device.probe);
  state.known.emplace(*name, made);
  return {{}, made.actor};
}

void on_add_memory(devices_pointer self, const add_memory& added) {
  self->state.memory.push_back(added.segment);
  for (const auto& [name, device] : self->state.known)
    self->send(device.actor, added);
}

caf::result<retire_answer> on_forget_memory(devices_pointer self, const forget_memory& gone) {
  auto& state = self->state;
  std::erase_if(state.memory, [&](const auto& segment) { return segment->data() == gone.begin; });
  auto reply = make_answer<retire_answer>(self);
  auto promise = reply.promise();
  auto devices = std::make_shared<countdown>([reply]() mutable { reply.deliver(retire_answer{}); });
  for (const auto& [name, device] : state.known) {
    devices->begin();
    self->request(device.actor, caf::infinite, gone)
        .then([devices](const retire_answer&) { devices->end(); },
              // Forgotten meanwhile, because it had no process.
              [devices](const caf::error&) { devices->end(); });
  }
  devices->end();
  return promise;
}

gpu_registry_actor::behavior_type devices_behavior(devices_pointer self,
                                                   const std::shared_ptr<devices_arguments>& arguments) {
  self->state.with = *arguments;
  return {
      [self](const open_device_request& request) { return on_open(self, request); },
      [self](const add_memory& added) { on_add_memory(self, added); },
      [self](const forget_memory& gone) { return on_forget_memory(self, gone); },
  };
}

} // namespace

gpu_registry_actor spawn_devices(caf::actor_system& system, devices_arguments arguments) {
  return system.spawn(devices_behavior, std::make_shared<devices_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
