#include "actors/gpu/child/stream_actor.hpp"

#include "gpu/process/process_message.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_cast.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <poll.h>

#include <algorithm>
#include <cassert>

namespace terrace::actors {

namespace {

struct stream_state {
  const char* name = "stream";
  stream_owner owner;
  std::unique_ptr<gpu::copy_stream> copies;
};

constexpr uint64_t copies_tag = 1;

using stream_interface = stream_actor::extend<caf::reacts_to<runtime::io_done>>;
using stream_pointer = caf::stateful_actor<stream_state, runtime::homed<stream_interface::base>>*;

struct stream_seed {
  std::unique_ptr<gpu::copy_stream> copies;
  stream_owner owner;
};

/// Watches for the one completion that arrives when copies have ended.
void watch_copies(stream_pointer self) {
  runtime::io_request request;
  request.code = runtime::io_code::poll;
  request.fd = self->state.copies->descriptor();
  request.events = POLLIN;
  self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), copies_tag);
}

void tell_over(stream_pointer self, uint64_t id, error failure) {
  self->send(self->state.owner, stream_over{id, std::move(failure)});
}

void on_stream_copy(stream_pointer self, stream_copy& wanted) {
  assert(wanted.copies.size() <= gpu::copies_per_message_max); // it came as one message
  gpu::copy_request request;
  request.id = wanted.id;
  request.region = std::move(wanted.region);
  request.object = std::move(wanted.staging);
  request.page = std::move(wanted.page);
  request.parts.resize(std::max<size_t>(wanted.signals, 1));
  request.parts.front().copies = std::move(wanted.copies);
  for (uint32_t i = 0; i < wanted.signals; ++i)
    request.parts[i].signal = gpu::generation{wanted.signal.slot + i, wanted.signal.value};
  if (auto ok = self->state.copies->submit(std::move(request)); !ok)
    tell_over(self, wanted.id, ok.error());
}

void tell_ended(stream_pointer self) {
  for (gpu::completion& each : self->state.copies->drain())
    tell_over(self, each.id, each.failure ? std::move(*each.failure) : error{});
}

stream_interface::behavior_type stream_behavior(stream_pointer self,
                                                const std::shared_ptr<stream_seed>& seed) {
  auto& state = self->state;
  state.copies = std::move(seed->copies);
  state.owner = std::move(seed->owner);
  watch_copies(self);
  return {
      [self](stream_copy& wanted) {
        on_stream_copy(self, wanted);
        // The calls of one copy may take as long as the copy, so the ends of earlier copies do not wait for
        // later ones.
        tell_ended(self);
      },
      [self](const runtime::io_done& done) {
        if (done.result < 0) // the process ends
          return;
        tell_ended(self);
        watch_copies(self);
      },
  };
}

} // namespace

result<stream_actor> spawn_stream(caf::actor_system& system, const runtime::home& home,
                                  std::shared_ptr<gpu::device> device, gpu::direction way,
                                  stream_owner owner) {
  auto copies = gpu::copy_stream::open(std::move(device), way);
  if (!copies)
    return tl::unexpected(copies.error());
  auto seed = std::make_shared<stream_seed>(stream_seed{std::move(*copies), std::move(owner)});
  return stream_actor(runtime::spawn_homed(system, home, stream_behavior, seed));
}

} // namespace terrace::actors
