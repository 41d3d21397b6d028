#include "actors/gpu/stream_actor.hpp"

#include "runtime/io_messages.hpp"

#include <caf/actor_cast.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <poll.h>

#include <algorithm>
#include <cassert>

namespace terrace::actors {

namespace {

/// A device stream on which one generation is awaited at a time.
struct wait_stream {
  std::shared_ptr<gpu::completion_queue> completions;
  std::unique_ptr<gpu::copy_engine> engine; ///< ends before the queue
  std::optional<stream_await> what;         ///< none: it is idle
  uint64_t tickets = 0;
};

struct stream_state {
  const char* name = "stream";
  std::shared_ptr<gpu::device> device;
  stream_owner owner;
  std::unique_ptr<gpu::copy_stream> copies;
  std::vector<std::unique_ptr<wait_stream>> waits; ///< by tag
};

constexpr uint64_t copies_tag = UINT64_MAX;

using stream_interface = stream_actor::extend<caf::reacts_to<runtime::io_done>>;
using stream_pointer = caf::stateful_actor<stream_state, runtime::homed<stream_interface::base>>*;

struct stream_seed {
  std::shared_ptr<gpu::device> device;
  std::unique_ptr<gpu::copy_stream> copies;
  stream_owner owner;
};

/// One completion when the descriptor is readable.
void watch_stream(stream_pointer self, int descriptor, uint64_t tag) {
  runtime::io_request request;
  request.code = runtime::io_code::poll;
  request.fd = descriptor;
  request.events = POLLIN;
  self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

void tell_over(stream_pointer self, uint64_t id, error failure) {
  self->send(self->state.owner, stream_over{id, std::move(failure)});
}

void on_stream_copy(stream_pointer self, stream_copy& wanted) {
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

void on_copies_ready(stream_pointer self) {
  for (gpu::completion& each : self->state.copies->drain())
    tell_over(self, each.id, each.failure ? std::move(*each.failure) : error{});
  watch_stream(self, self->state.copies->descriptor(), copies_tag);
}

/// An idle stream for waits, or a new one.
result<size_t> take_wait_stream(stream_pointer self) {
  auto& waits = self->state.waits;
  for (size_t i = 0; i < waits.size(); ++i)
    if (!waits[i]->what)
      return i;
  auto queue = gpu::completion_queue::make();
  if (!queue)
    return tl::unexpected(queue.error());
  auto engine = self->state.device->make_engine(*queue);
  if (!engine)
    return tl::unexpected(engine.error());
  auto made = std::make_unique<wait_stream>();
  made->completions = std::move(*queue);
  made->engine = std::move(*engine);
  waits.push_back(std::move(made));
  watch_stream(self, waits.back()->completions->descriptor(), waits.size() - 1);
  return waits.size() - 1;
}

void on_stream_await(stream_pointer self, const stream_await& wanted) {
  if (wanted.page->page().has(wanted.awaited)) {
    tell_over(self, wanted.id, {});
    return;
  }
  auto number = take_wait_stream(self);
  if (!number) {
    tell_over(self, wanted.id, number.error());
    return;
  }
  wait_stream& on = *self->state.waits[*number];
  assert(!on.what); // one wait on each stream
  gpu::copy_engine::step step;
  step.ticket = step.request = ++on.tickets;
  step.way = gpu::direction::store;
  step.page = wanted.page.get();
  step.await = wanted.awaited;
  on.what = wanted;
  // A failed step still has its ticket, unless the device is lost.
  auto ok = on.engine->issue(step);
  if (ok)
    ok = on.engine->flush();
  if (!ok && ok.error().code == errc::gone) {
    on.what.reset();
    tell_over(self, wanted.id, ok.error());
  }
}

/// The wait ends as if the generation had come: the engine's stream does not know of cancellations.
void on_stream_cancel(stream_pointer self, const stream_cancel& which) {
  for (auto& each : self->state.waits)
    if (each->what && each->what->id == which.id)
      each->what->page->page().advance(each->what->awaited);
}

void on_wait_ready(stream_pointer self, size_t number) {
  wait_stream& on = *self->state.waits[number];
  for (gpu::over_part& over : on.completions->take()) {
    if (!on.what)
      continue;
    auto id = on.what->id;
    on.what.reset();
    tell_over(self, id, over.failure ? std::move(*over.failure) : error{});
  }
  watch_stream(self, on.completions->descriptor(), number);
}

stream_interface::behavior_type stream_behavior(stream_pointer self,
                                                const std::shared_ptr<stream_seed>& seed) {
  auto& state = self->state;
  state.device = std::move(seed->device);
  state.copies = std::move(seed->copies);
  state.owner = std::move(seed->owner);
  watch_stream(self, state.copies->descriptor(), copies_tag);
  return {
      [self](stream_copy& wanted) { on_stream_copy(self, wanted); },
      [self](const stream_await& wanted) { on_stream_await(self, wanted); },
      [self](const stream_cancel& which) { on_stream_cancel(self, which); },
      [self](const runtime::io_done& done) {
        if (done.result < 0)
          return; // the process ends
        if (done.tag == copies_tag)
          on_copies_ready(self);
        else
          on_wait_ready(self, static_cast<size_t>(done.tag));
      },
  };
}

} // namespace

result<stream_actor> spawn_stream(caf::actor_system& system, const runtime::home& home,
                                  std::shared_ptr<gpu::device> device, gpu::direction way,
                                  stream_owner owner) {
  auto copies = gpu::copy_stream::open(device, way);
  if (!copies)
    return tl::unexpected(copies.error());
  auto seed =
      std::make_shared<stream_seed>(stream_seed{std::move(device), std::move(*copies), std::move(owner)});
  return stream_actor(runtime::spawn_homed(system, home, stream_behavior, seed));
}

} // namespace terrace::actors
