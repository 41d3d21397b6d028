#include "actors/gpu/daemon/device_state.hpp"

#include "base/printable.hpp"
#include "runtime/answer.hpp"

namespace terrace::actors {

namespace {

using gpu::process_verb;
using step = gpu::pinned_arenas::step;

/// Called when the process has answered or is lost.
void on_step(device_pointer self, const error& failure) {
  auto& state = self->state;
  if (failure.code == errc::gone)
    return; // others report its loss
  state.arenas.done(failure);
  state.with.probe->pins(state.arenas.pinned_bytes());
  if (failure.code != errc::ok) {
    std::string text =
        "device " + state.with.probe->name() + " reads " + readable_bytes(state.arenas.pinned_bytes()) +
        " of host memory itself (gpu.map_arenas), the rest passes staging memory: " + failure.text;
    (failure.code == errc::unsupported ? state.with.log : state.with.warn)(text);
  }
  pin_more(self);
}

/// Errors: no descriptor for the process.
result<process_packet> packet_of(const step& next) {
  process_packet packet;
  packet.message.region = next.region;
  packet.message.bytes = next.bytes;
  packet.message.verb = process_verb::forget;
  if (next.what == step::kind::map) {
    auto descriptor = next.segment->duplicate();
    if (!descriptor)
      return tl::unexpected(descriptor.error());
    packet.message.verb = process_verb::map_memory;
    packet.descriptor = std::make_shared<unique_fd>(std::move(*descriptor));
  } else if (next.what == step::kind::pin) {
    packet.message.verb = process_verb::pin_memory;
    packet.message.arena = next.mapped;
    packet.message.offset = next.offset;
  }
  return packet;
}

} // namespace

void pin_more(device_pointer self) {
  auto& state = self->state;
  if (state.now != device_state::phase::ready)
    return;
  // A region has the number of the request that makes it.
  auto next = state.arenas.next(state.next_id);
  if (!next)
    return;
  auto packet = packet_of(*next);
  if (!packet) {
    on_step(self, packet.error());
    return;
  }
  ask_process(self, std::move(*packet),
              [self](const error& failure, const process_packet&) { on_step(self, failure); });
}

void on_add_memory(device_pointer self, const add_memory& added) {
  self->state.arenas.add(added.segment);
  pin_more(self);
}

caf::result<retire_answer> on_forget_memory(device_pointer self, const forget_memory& gone) {
  auto reply = make_answer<retire_answer>(self);
  auto promise = reply.promise();
  self->state.arenas.remove(gone.begin, [reply]() mutable { reply.deliver(retire_answer{}); });
  pin_more(self);
  return promise;
}

void quarantine_reads(device_pointer self) {
  auto& state = self->state;
  for (const disk_work& work : state.reads.works)
    if (work.read)
      state.quarantine.insert(state.quarantine.end(), work.read->request.copy.owners.begin(),
                              work.read->request.copy.owners.end());
  for (const slice_work& work : state.slices) {
    const copy_request& request = work.copy->request;
    if (request.arena && region_of(*request.arena).peer())
      state.quarantine.insert(state.quarantine.end(), request.owners.begin(), request.owners.end());
  }
}

void end_arenas(device_pointer self) {
  auto& state = self->state;
  state.arenas.ended();
  state.with.probe->pins(0);
  state.quarantine.clear();
}

} // namespace terrace::actors
