#include "actors/transfer/write_through_actor.hpp"

#include "actors/answer.hpp"
#include "actors/disk/disk_fan.hpp"
#include "actors/transfer/copy_ops.hpp"
#include "actors/transfer/write_credits.hpp"
#include "storage/object_header.hpp"
#include "transfer/write_budget.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

namespace terrace::actors {

namespace {

struct write_through_state {
  const char* name = "writes";
  write_through_arguments with;
  std::deque<write_through_notice> line;
  uint64_t bytes_in_progress = 0;
  std::unique_ptr<write_credits> credits;
  std::unique_ptr<write_budget> budget;
  size_t in_progress = 0;                              ///< passages
  std::vector<answer<finish_writes_answer>> finishing; ///< who waits for the last of them
};

/// So many headers this actor writes itself where the checksums are known: they take less time than waking a copier.
constexpr size_t headers_here_max = 64;

using clock = std::chrono::steady_clock;
using metrics::refusal_reason;

using self_pointer = caf::stateful_actor<write_through_state>*;

/// One notice on its way. Its end, whatever the reason, is the end of its holds and its reservation.
struct passage {
  write_through_notice what;
  uint64_t bytes = 0;
  reservation_ptr reserved;
  std::vector<bool> wanted;   ///< parallel to the notice's objects: still in host memory, and admitted
  std::vector<uint64_t> paid; ///< parallel: bytes of the day's budget
  std::vector<sealed_object> objects;    ///< those that disk has room for and does not have
  std::vector<object_place> host_places; ///< parallel to `objects`, until they are confirmed
  std::vector<object_place> disk_places; ///< parallel to `objects`
};
using passage_ptr = std::shared_ptr<passage>;

void start_next(self_pointer self);

void want_second_looks(self_pointer self) {
  if (self->state.with.second_looks)
    self->state.with.second_looks->store(true, std::memory_order_relaxed);
}

void answer_if_idle(self_pointer self) {
  auto& state = self->state;
  if (state.in_progress == 0 && state.line.empty())
    for (auto& waiting : std::exchange(state.finishing, {}))
      waiting.deliver({});
}

void finish(self_pointer self, const passage_ptr& pass) {
  for (uint64_t bytes : pass->paid)
    self->state.budget->give_back(bytes);
  self->state.bytes_in_progress -= pass->bytes;
  --self->state.in_progress;
  start_next(self);
}

auto on_lost_actor(self_pointer self, const passage_ptr& pass) {
  return [self, pass](const caf::error&) {
    self->state.with.probe->dropped(pass->objects.size());
    finish(self, pass);
  };
}

void publish(self_pointer self, const passage_ptr& pass, const disks_answer& written) {
  publish_request request;
  uint64_t bytes = 0;
  for (size_t i = 0; i < pass->disk_places.size(); ++i) {
    if (written.failed[i] == EBUSY)
      self->state.with.probe->refused(refusal_reason::degraded, 1);
    else if (written.failed[i] != 0)
      self->state.with.probe->dropped(1);
    if (written.failed[i] != 0) {
      want_second_looks(self);
      continue;
    }
    bytes += pass->objects[i].payload_bytes;
    request.places.push_back(pass->disk_places[i]);
  }
  if (request.places.empty()) {
    finish(self, pass);
    return;
  }
  request.in = pass->what.in;
  self->state.with.probe->written(bytes);
  self->request(self->state.with.disk_tier, caf::infinite, std::move(request))
      .then([self, pass](const publish_answer&) { finish(self, pass); }, on_lost_actor(self, pass));
}

void write(self_pointer self, const passage_ptr& pass) {
  disk_request request;
  request.direction = disk_direction::write;
  request.owners = {pass->what.held, pass->reserved};
  for (size_t i = 0; i < pass->objects.size(); ++i)
    request.operations.push_back(
        {pass->disk_places[i].offset, pass->objects[i].begin, pass->objects[i].physical_bytes});
  ask_disks(
      self, self->state.with.disk, request,
      [self, pass](const disks_answer& written) { publish(self, pass, written); }, on_lost_actor(self, pass));
}

void seal(self_pointer self, const passage_ptr& pass) {
  seal_request request;
  request.in = pass->what.in;
  request.volume = self->state.with.disk.paths->volume();
  request.objects = pass->objects;
  request.owners = {pass->what.held};
  bool known = std::all_of(pass->objects.begin(), pass->objects.end(),
                           [](const sealed_object& object) { return object.checksum.has_value(); });
  if (known && pass->objects.size() <= headers_here_max) {
    seal_objects(request);
    write(self, pass);
    return;
  }
  self->request(self->state.with.copiers->next(), caf::infinite, std::move(request))
      .then([self, pass](const seal_answer&) { write(self, pass); }, on_lost_actor(self, pass));
}

/// What was cleared from host memory before disk had a place for it is not written: nobody would find it there to clear.
void confirm(self_pointer self, const passage_ptr& pass) {
  confirm_request request;
  for (const object_place& place : pass->host_places)
    request.ids.push_back(place.id);
  self->request(self->state.with.host_tier, caf::infinite, std::move(request))
      .then(
          [self, pass](const confirm_answer& answer) {
            size_t kept = 0;
            for (size_t i = 0; i < pass->objects.size(); ++i)
              if (answer.present[i]) {
                pass->objects[kept] = pass->objects[i];
                pass->disk_places[kept++] = pass->disk_places[i];
              }
            pass->objects.resize(kept);
            pass->disk_places.resize(kept);
            if (kept == 0)
              finish(self, pass);
            else
              seal(self, pass);
          },
          on_lost_actor(self, pass));
}

void reserved(self_pointer self, const passage_ptr& pass, const acquire_answer& answer) {
  if (answer.failure.code != errc::ok) {
    want_second_looks(self);
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
    object.generation = answer.places[i].generation;
    object.begin = self->state.with.memory->at(host_places[i].offset);
    object.payload_bytes = host_places[i].payload_bytes;
    object.physical_bytes = physical_bytes_for(object.payload_bytes);
    if (!pass->what.checksums.empty())
      object.checksum = pass->what.checksums[i];
    pass->objects.push_back(object);
    pass->host_places.push_back(host_places[i]);
    pass->disk_places.push_back(answer.places[i]);
    if (!pass->paid.empty())
      pass->paid[i] = 0; // it is spent
  }
  if (pass->objects.empty())
    finish(self, pass);
  else
    confirm(self, pass);
}

/// Space on disk for what is wanted.
void acquire(self_pointer self, const passage_ptr& pass) {
  acquire_request request;
  request.objects = pass->what.objects;
  request.may_wait = false; // a disk on which everything is leased refuses; host memory must not wait for it
  request.note_access = false;
  request.may_fill = pass->wanted;
  self->request(self->state.with.disk_tier, caf::infinite, std::move(request))
      .then([self, pass](const acquire_answer& answer) { reserved(self, pass, answer); },
            on_lost_actor(self, pass));
}

/// Nothing from object `i` on is written.
void refuse_from(self_pointer self, const passage_ptr& pass, size_t i, refusal_reason why) {
  want_second_looks(self);
  auto begin = pass->wanted.begin() + static_cast<ptrdiff_t>(i);
  self->state.with.probe->refused(why, static_cast<uint64_t>(std::count(begin, pass->wanted.end(), true)));
  std::fill(begin, pass->wanted.end(), false);
}

void pay(self_pointer self, const passage_ptr& pass) {
  auto now = clock::now();
  pass->paid.resize(pass->wanted.size());
  for (size_t i = 0; i < pass->wanted.size(); ++i) {
    if (!pass->wanted[i])
      continue;
    uint64_t bytes = physical_bytes_for(pass->what.objects->payload_bytes[i]);
    if (!self->state.budget->take(bytes, now)) {
      refuse_from(self, pass, i, refusal_reason::endurance);
      break;
    }
    pass->paid[i] = bytes;
  }
  if (std::find(pass->wanted.begin(), pass->wanted.end(), true) == pass->wanted.end())
    finish(self, pass);
  else
    acquire(self, pass);
}

/// Objects that fit into `room_bytes` are not asked about.
void ask_policy(self_pointer self, const passage_ptr& pass, uint64_t room_bytes) {
  admit_request request;
  request.tier = tier_kind::disk;
  request.rule = self->state.with.admission.rule;
  std::vector<size_t> asked;
  const object_batch& objects = *pass->what.objects;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!pass->wanted[i])
      continue;
    uint64_t bytes = physical_bytes_for(objects.payload_bytes[i]);
    if (asked.empty() && bytes <= room_bytes) {
      room_bytes -= bytes;
      continue;
    }
    asked.push_back(i);
    request.entries.push_back({to_entry_key(objects.keys[i]), objects.parents[i], bytes});
  }
  if (asked.empty()) {
    pay(self, pass);
    return;
  }
  want_second_looks(self);
  self->request(self->state.with.policy, caf::infinite, std::move(request))
      .then(
          [self, pass, asked](const admit_answer& answer) {
            if (answer.admitted < asked.size())
              refuse_from(self, pass, asked[answer.admitted], refusal_reason::admission);
            pay(self, pass);
          },
          on_lost_actor(self, pass));
}

/// Where nobody must leave for it, everything beats its victim.
void ask_room(self_pointer self, const passage_ptr& pass) {
  self->request(self->state.with.disk_tier, caf::infinite, tier_status_request{})
      .then([self, pass](const tier_report& now) { ask_policy(self, pass, now.room_bytes); },
            on_lost_actor(self, pass));
}

/// What the disk has already needs neither leave nor bytes.
void ask_disk_tier(self_pointer self, const passage_ptr& pass) {
  self->request(self->state.with.disk_tier, caf::infinite, probe_request{pass->what.objects, false, false})
      .then(
          [self, pass](const probe_answer& answer) {
            for (size_t i = 0; i < pass->wanted.size(); ++i)
              pass->wanted[i] = pass->wanted[i] && !answer.present.test(i);
            if (std::find(pass->wanted.begin(), pass->wanted.end(), true) == pass->wanted.end()) {
              finish(self, pass);
              return;
            }
            switch (self->state.with.admission.rule) {
              case admission_rule::always: pay(self, pass); break;
              case admission_rule::seen_twice: ask_policy(self, pass, 0); break;
              case admission_rule::beats_victim: ask_room(self, pass); break;
            }
          },
          on_lost_actor(self, pass));
}

void start(self_pointer self, write_through_notice notice) {
  auto& state = self->state;
  auto pass = std::make_shared<passage>();
  pass->what = std::move(notice);
  for (uint64_t bytes : pass->what.objects->payload_bytes)
    pass->bytes += bytes;
  state.bytes_in_progress += pass->bytes;
  ++state.in_progress;
  // An object that is gone from the hold was never there: nothing to write.
  const auto& places = pass->what.held->places();
  pass->wanted.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    pass->wanted[i] = places[i].present();
  if (!state.with.disk.service->writes()) {
    refuse_from(self, pass, 0, refusal_reason::degraded);
    --state.in_progress;
    state.bytes_in_progress -=
        pass->bytes; // and not `finish`, which would come back here for each in the line
  } else if (state.with.admission.rule == admission_rule::always && state.with.admission.bytes_per_day == 0) {
    acquire(self, pass);
  } else {
    ask_disk_tier(self, pass);
  }
}

void start_next(self_pointer self) {
  auto& state = self->state;
  while (!state.line.empty() &&
         (state.bytes_in_progress == 0 || state.bytes_in_progress < state.with.bytes_in_progress)) {
    write_through_notice notice = std::move(state.line.front());
    state.line.pop_front();
    start(self, std::move(notice));
  }
  answer_if_idle(self);
}

// ---- credits ----

credit_ptr credit_of(self_pointer self, uint64_t bytes) {
  return std::make_shared<write_credit>(caf::actor_cast<caf::actor>(self), bytes);
}

caf::result<write_credit_answer> ask_credit(self_pointer self, const write_credit_request& request) {
  auto reply = make_answer<write_credit_answer>(self);
  self->state.credits->ask(
      request.bytes, request.context, [self, reply, bytes = request.bytes](errc code) mutable {
        write_credit_answer answer;
        if (code == errc::ok)
          answer.credit = credit_of(self, bytes);
        else
          answer.failure = {
              code, "the request ended while it waited for the disk: as much of host memory as may wait for "
                    "it (half) holds objects that are not written yet"};
        reply.deliver(std::move(answer));
      });
  return reply.promise();
}

void take(self_pointer self, write_through_notice notice) {
  if (!notice.credit) {
    uint64_t bytes = 0;
    for (uint64_t each : notice.objects->payload_bytes)
      bytes += physical_bytes_for(each);
    if (!self->state.credits->try_take(bytes))
      return;
    notice.credit = credit_of(self, bytes);
  }
  self->state.line.push_back(std::move(notice));
  start_next(self);
}

caf::behavior write_through_behavior(self_pointer self,
                                     const std::shared_ptr<write_through_arguments>& arguments) {
  auto& state = self->state;
  state.with = *arguments;
  state.credits = std::make_unique<write_credits>(state.with.waiting_bytes);
  state.budget = std::make_unique<write_budget>(state.with.admission.bytes_per_day, clock::now());
  return {
      [self](const write_through_notice& notice) { take(self, notice); },
      [self](finish_writes_request) {
        auto reply = make_answer<finish_writes_answer>(self);
        self->state.finishing.push_back(reply);
        answer_if_idle(self);
        return reply.promise();
      },
      [self](const write_credit_request& request) { return ask_credit(self, request); },
      [self](const write_credit_notice& notice) { self->state.credits->give_back(notice.bytes); },
      [self](sweep_notice) { self->state.credits->sweep(); },
  };
}

} // namespace

caf::actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments) {
  return system.spawn(write_through_behavior,
                      std::make_shared<write_through_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
