// Memory that the process maps, and everything that ends with its mapping.
#include "actors/gpu/daemon/device_state.hpp"

#include <caf/actor_cast.hpp>

#include <utility>

namespace terrace::actors {

namespace {

using gpu::process_verb;

/// Regions per device, including those that wait for an answer of the process or of the kernel.
constexpr size_t device_regions_max = 1024;

void on_region_mapped(device_pointer self, uint64_t id, const import_region_request& wanted,
                      const error& failure, answer<import_region_answer>& reply) {
  auto& state = self->state;
  bool mapped = failure.code == errc::ok;
  if (mapped)
    state.regions[id].bytes = wanted.bytes;
  else if (state.now == device_state::phase::ready)
    state.regions.erase(id);
  show_regions(self); // before anybody is told
  if (mapped) {
    import_region_answer done;
    done.memory = std::make_shared<device_region>(caf::actor_cast<device_actor>(self), id, state.process,
                                                  wanted.peer, wanted.events, state.reads.direct);
    reply.deliver(std::move(done));
  } else {
    reply.fail(failure);
  }
  go_on(self);
}

void forget_region(device_pointer self, uint64_t id) {
  process_packet packet;
  packet.message.verb = process_verb::forget;
  packet.message.region = id;
  ask_process(self, std::move(packet), [self, id](const error& failure, const process_packet&) {
    auto& state = self->state;
    auto region = state.regions.find(id);
    if (failure.code != errc::ok || region == state.regions.end())
      return; // the region ends with the process
    auto ends = std::move(region->second.ends);
    state.regions.erase(region);
    show_regions(self); // before anybody is told
    for (auto& end : ends)
      end.deliver(end_region_answer{});
    go_on(self);
  });
}

} // namespace

void send_import(device_pointer self, waiting_import wanted) {
  auto& state = self->state;
  uint64_t id = state.next_id;
  state.regions[id].peer = wanted.request.peer; // counts, and keeps the process unless it is a peer's
  process_packet packet;
  packet.message.verb = wanted.request.own          ? process_verb::allocate
                        : wanted.request.page       ? process_verb::import_page
                        : wanted.request.descriptor ? process_verb::import_memory
                                                    : process_verb::import_handle;
  packet.message.region = id;
  packet.message.bytes = wanted.request.bytes;
  packet.message.handle = wanted.request.handle;
  packet.message.signals = wanted.request.events;
  packet.descriptor = std::move(wanted.request.descriptor);
  ask_process(self, std::move(packet),
              [self, id, wanted = std::move(wanted)](const error& failure, const process_packet&) mutable {
                on_region_mapped(self, id, wanted.request, failure, wanted.reply);
              });
}

caf::result<import_region_answer> on_import(device_pointer self, const import_region_request& request) {
  auto& state = self->state;
  auto reply = make_answer<import_region_answer>(self);
  auto promise = reply.promise();
  if ((request.own || request.peer) && state.now != device_state::phase::ready) {
    reply.fail(no_such_process(self));
    return promise;
  }
  if (state.regions.size() + state.imports.size() >= device_regions_max) {
    reply.fail({errc::busy, subject(self) + " has " + std::to_string(device_regions_max) +
                                " regions, as many as are mapped at a time; unregister some"});
    return promise;
  }
  state.imports.push_back({request, std::move(reply)});
  go_on(self);
  return promise;
}

caf::result<share_region_answer> on_share(device_pointer self, const share_region_request& request) {
  auto reply = make_answer<share_region_answer>(self);
  auto promise = reply.promise();
  const auto& memory = region_of(*request.memory);
  if (self->state.now != device_state::phase::ready || memory.process() != self->state.process) {
    reply.fail(no_such_process(self));
    return promise;
  }
  process_packet packet;
  packet.message.verb = process_verb::share;
  packet.message.region = memory.id();
  ask_process(self, std::move(packet), [reply](const error& failure, const process_packet& answer) mutable {
    reply.deliver(share_region_answer{failure, answer.descriptor});
  });
  return promise;
}

void on_drop(device_pointer self, const drop_region_notice& notice) {
  auto& state = self->state;
  auto region = state.regions.find(notice.region);
  if (region == state.regions.end() || std::exchange(region->second.dropped, true))
    return;
  if (state.now == device_state::phase::ready && !notice.opened)
    forget_region(self, notice.region);
}

caf::result<end_region_answer> on_end_region(device_pointer self, uint64_t id) {
  auto promise = self->make_response_promise<end_region_answer>();
  auto region = self->state.regions.find(id);
  if (region == self->state.regions.end())
    promise.deliver(end_region_answer{});
  else
    region->second.ends.push_back(promise);
  return promise;
}

void show_regions(device_pointer self) {
  size_t count = 0;
  uint64_t bytes = 0;
  for (const auto& [id, region] : self->state.regions)
    if (!region.peer) {
      ++count;
      bytes += region.bytes;
    }
  self->state.with.probe->shows_regions(count, bytes);
}

} // namespace terrace::actors
