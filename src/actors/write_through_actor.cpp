#include "actors/write_through_actor.hpp"

#include "actors/disk_actor.hpp"
#include "storage/object_header.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <deque>

namespace terrace::actors {

namespace {

struct write_through_state {
  const char* name = "writes";
  write_through_arguments with;
  std::deque<write_through_notice> line;
  uint64_t bytes_in_progress = 0;
};

using self_pointer = caf::stateful_actor<write_through_state>*;

/// One notice on its way. Its end, whatever the reason, is the end of its holds and its reservation.
struct passage {
  write_through_notice what;
  uint64_t bytes = 0;
  reservation_ptr reserved;
  std::vector<sealed_object> objects;    ///< those that disk has room for and does not have
  std::vector<object_place> disk_places; ///< parallel to `objects`
};
using passage_ptr = std::shared_ptr<passage>;

void start_next(self_pointer self);

void finish(self_pointer self, const passage_ptr& pass) {
  self->state.bytes_in_progress -= pass->bytes;
  start_next(self);
}

auto on_lost_actor(self_pointer self, const passage_ptr& pass) {
  return [self, pass](const caf::error&) {
    self->state.with.probe->dropped(pass->objects.size());
    finish(self, pass);
  };
}

void publish(self_pointer self, const passage_ptr& pass, const disk_answer& written) {
  publish_request request;
  uint64_t bytes = 0;
  for (size_t i = 0; i < pass->disk_places.size(); ++i) {
    if (written.failed[i] != 0) {
      self->state.with.probe->dropped(1);
      continue;
    }
    bytes += pass->objects[i].payload_bytes;
    request.places.push_back(pass->disk_places[i]);
  }
  self->state.with.probe->written(bytes);
  self->request(self->state.with.disk_tier, caf::infinite, std::move(request))
      .then([self, pass](const publish_answer&) { finish(self, pass); }, on_lost_actor(self, pass));
}

void write(self_pointer self, const passage_ptr& pass) {
  disk_request request;
  request.direction = disk_direction::write;
  request.owners = {pass->what.held, pass->reserved};
  for (size_t i = 0; i < pass->objects.size(); ++i)
    request.operations.push_back({file_offset(*self->state.with.file, pass->disk_places[i]),
                                  pass->objects[i].begin, pass->objects[i].physical_bytes});
  self->request(self->state.with.disk, caf::infinite, std::move(request))
      .then(
          [self, pass](const disk_answer& written) {
            if (written.failure.code == errc::ok) {
              publish(self, pass, written);
              return;
            }
            self->state.with.probe->dropped(pass->objects.size());
            finish(self, pass);
          },
          on_lost_actor(self, pass));
}

void seal(self_pointer self, const passage_ptr& pass) {
  seal_request request;
  request.in = pass->what.in;
  request.store = {self->state.with.file->store(), self->state.with.file->epoch()};
  request.objects = pass->objects;
  request.owners = {pass->what.held};
  self->request(self->state.with.copiers->next(), caf::infinite, std::move(request))
      .then([self, pass](const seal_answer&) { write(self, pass); }, on_lost_actor(self, pass));
}

void reserved(self_pointer self, const passage_ptr& pass, const acquire_answer& answer) {
  if (answer.failure.code != errc::ok) {
    self->state.with.probe->dropped(pass->what.objects->size());
    finish(self, pass);
    return;
  }
  pass->reserved = answer.reserved;
  const auto& host_places = pass->what.held->places();
  for (size_t i = 0; i < answer.states.size(); ++i) {
    if (answer.states[i] != acquired_state::reserved || !host_places[i].present())
      continue;
    sealed_object object;
    object.key = pass->what.objects->keys[i];
    object.generation = static_cast<uint64_t>(answer.places[i].id);
    object.begin = self->state.with.memory->at(host_places[i].offset);
    object.payload_bytes = host_places[i].payload_bytes;
    object.physical_bytes = physical_bytes_for(object.payload_bytes);
    pass->objects.push_back(object);
    pass->disk_places.push_back(answer.places[i]);
  }
  if (pass->objects.empty())
    finish(self, pass);
  else
    seal(self, pass);
}

void start(self_pointer self, write_through_notice notice) {
  auto pass = std::make_shared<passage>();
  pass->what = std::move(notice);
  for (uint64_t bytes : pass->what.objects->payload_bytes)
    pass->bytes += bytes;
  self->state.bytes_in_progress += pass->bytes;
  acquire_request request;
  request.objects = pass->what.objects;
  request.may_wait = false; // a disk on which everything is leased refuses; host memory must not wait for it
  request.note_use = false;
  // An object that is gone from the hold was never there: nothing to write.
  const auto& places = pass->what.held->places();
  request.may_fill.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    request.may_fill[i] = places[i].present();
  self->request(self->state.with.disk_tier, caf::infinite, std::move(request))
      .then([self, pass](const acquire_answer& answer) { reserved(self, pass, answer); },
            on_lost_actor(self, pass));
}

void start_next(self_pointer self) {
  auto& state = self->state;
  while (!state.line.empty() &&
         (state.bytes_in_progress == 0 || state.bytes_in_progress < state.with.bytes_in_progress)) {
    write_through_notice notice = std::move(state.line.front());
    state.line.pop_front();
    start(self, std::move(notice));
  }
}

caf::behavior write_through_behavior(self_pointer self,
                                     const std::shared_ptr<write_through_arguments>& arguments) {
  self->state.with = *arguments;
  return {
      [self](const write_through_notice& notice) {
        self->state.line.push_back(notice);
        start_next(self);
      },
  };
}

} // namespace

caf::actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments) {
  return system.spawn(write_through_behavior,
                      std::make_shared<write_through_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
