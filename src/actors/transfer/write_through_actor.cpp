#include "actors/transfer/write_through_actor.hpp"

#include "actors/transfer/actor_credit_sink.hpp"
#include "actors/transfer/transfer_steps.hpp"
#include "coroutine/answer.hpp"
#include "storage/object_header.hpp"
#include "tier/write_credits.hpp"
#include "transfer/write_budget.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <utility>

namespace terrace::actors {

namespace {

struct write_through_state {
  const char* name = "writes";
  write_through_arguments with;
  std::deque<write_through_notice> line;
  std::unordered_map<uint64_t, task<>> passages; ///< by number
  uint64_t next_passage = 0;
  uint64_t bytes_in_progress = 0;
  std::unique_ptr<write_credits> credits;
  credit_sink_ptr sink; ///< sends to this actor
  std::unique_ptr<write_budget> budget;
  bool starting = false;                               ///< passages are being started
  std::vector<answer<finish_writes_answer>> finishing; ///< requests waiting for the last of them
};

using clock = std::chrono::steady_clock;
using metrics::refusal_reason;

using self_pointer = write_through_actor::stateful_pointer<write_through_state>;

/// One notice in progress. When it ends, for whatever reason, so do its holds and its reservation.
struct passage {
  write_through_notice what;
  uint64_t bytes = 0;
  std::vector<bool> wanted;          ///< parallel to the notice's objects: still in host memory, and admitted
  std::vector<uint64_t> paid;        ///< parallel: bytes of the daily budget
  std::vector<moved_object> objects; ///< absent in the tier, with space reserved there
  std::vector<object_place> host_places; ///< parallel to `objects`, until they are confirmed

  explicit passage(write_through_notice notice) : what(std::move(notice)) {
    for (uint64_t each : what.objects->payload_bytes)
      bytes += each;
    // An object missing from the hold was never present: nothing to write.
    for (const object_place& place : what.held->places())
      wanted.push_back(place.present());
  }

  bool wants_any() const { return std::find(wanted.begin(), wanted.end(), true) != wanted.end(); }
};

void want_second_looks(self_pointer self) {
  if (self->state.with.second_looks)
    self->state.with.second_looks->store(true, std::memory_order_relaxed);
}

// ---- admission ----

/// Objects from `i` on are not written.
void refuse_from(self_pointer self, passage& pass, size_t i, refusal_reason why) {
  want_second_looks(self);
  auto begin = pass.wanted.begin() + static_cast<ptrdiff_t>(i);
  self->state.with.probe->refused(why, static_cast<uint64_t>(std::count(begin, pass.wanted.end(), true)));
  std::fill(begin, pass.wanted.end(), false);
}

/// Omits what fits into `room_bytes`, because it evicts nothing. `asked`: the objects in the request.
admit_request admission_of(self_pointer self, const passage& pass, uint64_t room_bytes,
                           std::vector<size_t>& asked) {
  admit_request request;
  request.tier = self->state.with.kind;
  request.rule = self->state.with.admission.rule;
  const object_batch& objects = *pass.what.objects;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!pass.wanted[i])
      continue;
    uint64_t bytes = physical_bytes_for(objects.payload_bytes[i]);
    if (asked.empty() && bytes <= room_bytes) {
      room_bytes -= bytes;
      continue;
    }
    asked.push_back(i);
    request.entries.push_back({to_entry_key(objects.keys[i]), objects.parents[i], bytes});
  }
  return request;
}

void pay(self_pointer self, passage& pass) {
  auto now = clock::now();
  pass.paid.resize(pass.wanted.size());
  for (size_t i = 0; i < pass.wanted.size(); ++i) {
    if (!pass.wanted[i])
      continue;
    uint64_t bytes = physical_bytes_for(pass.what.objects->payload_bytes[i]);
    if (!self->state.budget->take(bytes, now)) {
      refuse_from(self, pass, i, refusal_reason::endurance);
      return;
    }
    pass.paid[i] = bytes;
  }
}

/// Reduces `pass.wanted` to what the tier lacks, what is admitted and what the daily budget allows.
task<error> admit(self_pointer self, passage& pass) {
  const auto& with = self->state.with;
  probe_request question{pass.what.objects, false, false};
  auto found = co_await ask<probe_answer>(self, with.tier, std::move(question), "disk tier");
  if (!found)
    co_return found.error();
  for (size_t i = 0; i < pass.wanted.size(); ++i)
    pass.wanted[i] = pass.wanted[i] && !found->present.test(i);
  if (!pass.wants_any())
    co_return error{};

  uint64_t room_bytes = 0; // if nothing must be evicted for it, everything is admitted
  if (with.admission.rule == admission_rule::beats_victim) {
    tier_status_request status;
    auto now = co_await ask<tier_report>(self, with.tier, status, "disk tier");
    if (!now)
      co_return now.error();
    room_bytes = now->room_bytes;
  }
  std::vector<size_t> asked;
  if (with.admission.rule != admission_rule::always) {
    auto admission = admission_of(self, pass, room_bytes, asked);
    if (!asked.empty()) {
      want_second_looks(self);
      auto answer = co_await ask<admit_answer>(self, with.policy, std::move(admission), "policy");
      if (!answer)
        co_return answer.error();
      if (answer->admitted < asked.size())
        refuse_from(self, pass, asked[answer->admitted], refusal_reason::admission);
    }
  }
  pay(self, pass);
  co_return error{};
}

// ---- writing ----

/// Space in the tier for the wanted objects.
acquire_request space_for(const passage& pass) {
  acquire_request request;
  request.objects = pass.what.objects;
  request.may_wait = false; // a disk on which everything is leased refuses; host memory must not wait for it
  request.note_access = false;
  request.may_fill = pass.wanted;
  return request;
}

void take_space(self_pointer self, passage& pass, const acquire_answer& acquired) {
  const auto& host_places = pass.what.held->places();
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    if (acquired.states[i] != acquired_state::reserved || !host_places[i].present())
      continue;
    moved_object object;
    object.key = pass.what.objects->keys[i];
    object.place = acquired.places[i];
    object.memory = self->state.with.memory->at(host_places[i].offset);
    if (!pass.what.checksums.empty())
      object.checksum = pass.what.checksums[i];
    pass.objects.push_back(object);
    pass.host_places.push_back(host_places[i]);
    if (!pass.paid.empty())
      pass.paid[i] = 0; // it is spent
  }
}

confirm_request confirm_of(const passage& pass) {
  confirm_request request;
  for (const object_place& place : pass.host_places)
    request.ids.push_back(place.id);
  return request;
}

/// Objects cleared from host memory before the disk reserved space for them are not written: a clear would
/// not find them there.
void drop_cleared(passage& pass, const std::vector<bool>& present) {
  size_t kept = 0;
  for (size_t i = 0; i < pass.objects.size(); ++i)
    if (present[i])
      pass.objects[kept++] = pass.objects[i];
  pass.objects.resize(kept);
}

write_request write_of(const passage& pass, const reservation_ptr& reserved) {
  write_request request;
  request.in = pass.what.in;
  request.objects = pass.objects;
  request.owners = {pass.what.held, reserved};
  return request;
}

/// The objects that were written.
publish_request publication_of(self_pointer self, const passage& pass,
                               const std::vector<move_outcome>& outcomes) {
  publish_request request;
  request.in = pass.what.in;
  uint64_t bytes = 0;
  for (size_t i = 0; i < pass.objects.size(); ++i) {
    if (outcomes[i] == move_outcome::done) {
      bytes += pass.objects[i].place.payload_bytes;
      request.places.push_back(pass.objects[i].place);
      continue;
    }
    want_second_looks(self);
    if (outcomes[i] == move_outcome::away)
      self->state.with.probe->refused(refusal_reason::degraded, 1);
    else
      self->state.with.probe->dropped(1);
  }
  if (bytes != 0)
    self->state.with.probe->written(bytes);
  return request;
}

/// An error: an actor has ended, and `pass.objects` is not written.
task<error> bring_down(self_pointer self, passage& pass) {
  const auto& with = self->state.with;
  if (with.availability && !with.availability->writes()) {
    refuse_from(self, pass, 0, refusal_reason::degraded);
    co_return error{};
  }
  if (with.admission.rule != admission_rule::always || with.admission.bytes_per_day != 0) {
    auto failure = co_await admit(self, pass);
    if (failure.code != errc::ok)
      co_return failure;
    if (!pass.wants_any())
      co_return error{};
  }
  auto wanted = space_for(pass);
  auto acquired = co_await ask<acquire_answer>(self, with.tier, std::move(wanted), "disk tier");
  if (!acquired)
    co_return acquired.error();
  if (acquired->failure.code != errc::ok) {
    want_second_looks(self);
    with.probe->dropped(pass.what.objects->size());
    co_return error{};
  }
  take_space(self, pass, *acquired);
  if (pass.objects.empty())
    co_return error{};

  auto confirm = confirm_of(pass);
  auto confirmed = co_await ask<confirm_answer>(self, with.host_tier, std::move(confirm), "host tier");
  if (!confirmed)
    co_return confirmed.error();
  drop_cleared(pass, confirmed->present);
  if (pass.objects.empty())
    co_return error{};

  auto write = write_of(pass, acquired->reserved);
  auto written = co_await ask<move_answer>(self, with.mover, std::move(write), "mover of the tier");
  if (auto failure = failure_of(written); failure.code != errc::ok)
    co_return failure;
  auto complete = publication_of(self, pass, written->outcomes);
  if (complete.places.empty())
    co_return error{};
  auto published = co_await ask<publish_answer>(self, with.tier, std::move(complete), "disk tier");
  co_return published ? error{} : published.error();
}

// ---- the queue ----

void start_next(self_pointer self);

task<> write_through(self_pointer self, write_through_notice notice, uint64_t number) {
  passage pass(std::move(notice));
  self->state.bytes_in_progress += pass.bytes;
  auto failure = co_await bring_down(self, pass);
  auto& state = self->state;
  if (failure.code != errc::ok)
    state.with.probe->dropped(pass.objects.size());
  for (uint64_t bytes : pass.paid)
    state.budget->give_back(bytes);
  state.bytes_in_progress -= pass.bytes;
  state.passages.erase(number);
  start_next(self);
}

void start_next(self_pointer self) {
  auto& state = self->state;
  if (std::exchange(state.starting, true))
    return; // a passage ended immediately: the loop that started it continues
  while (!state.line.empty() &&
         (state.bytes_in_progress == 0 || state.bytes_in_progress < state.with.bytes_in_progress)) {
    write_through_notice notice = std::move(state.line.front());
    state.line.pop_front();
    uint64_t number = state.next_passage++;
    auto& progress = state.passages[number];
    progress = write_through(self, std::move(notice), number);
    progress.start();
  }
  state.starting = false;
  if (state.passages.empty() && state.line.empty())
    for (auto& waiting : std::exchange(state.finishing, {}))
      waiting.deliver({});
}

// ---- credits ----

credit_ptr credit_of(self_pointer self, uint64_t bytes) {
  return std::make_shared<write_credit>(self->state.sink, bytes);
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
              code, "the request ended while it waited for the disk: objects not yet written fill half of "
                    "host memory, their maximum"};
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

write_through_actor::behavior_type
write_through_behavior(self_pointer self, const std::shared_ptr<write_through_arguments>& arguments) {
  auto& state = self->state;
  state.with = *arguments;
  state.credits = std::make_unique<write_credits>(state.with.waiting_bytes);
  state.sink = std::make_shared<actor_credit_sink>(caf::actor_cast<caf::actor>(self));
  state.budget = std::make_unique<write_budget>(state.with.admission.bytes_per_day, clock::now());
  return {
      [self](const write_through_notice& notice) { take(self, notice); },
      [self](finish_writes_request) {
        auto reply = make_answer<finish_writes_answer>(self);
        self->state.finishing.push_back(reply);
        start_next(self);
        return reply.promise();
      },
      [self](const write_credit_request& request) { return ask_credit(self, request); },
      [self](const write_credit_notice& notice) { self->state.credits->give_back(notice.bytes); },
      [self](sweep_notice) { self->state.credits->sweep(); },
  };
}

} // namespace

write_through_actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments) {
  return system.spawn(write_through_behavior,
                      std::make_shared<write_through_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
