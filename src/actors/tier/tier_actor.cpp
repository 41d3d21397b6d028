#include "actors/tier/tier_actor.hpp"

#include "actors/tier/actor_release_sink.hpp"
#include "actors/tier/allocator_actor.hpp"
#include "coroutine/answer.hpp"
#include "runtime/short_turns.hpp"
#include "tier/eviction_round.hpp"
#include "tier/note_line.hpp"
#include "tier/residency.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>

namespace terrace::actors {

/// A clear in progress.
struct clear_turns {
  clear_request request;
  residency::clear_walk walk;
  answer<clear_answer> reply;
};

namespace {

struct tier_shell {
  const char* name = "tier";
  residency objects;
  release_sink_ptr sink; ///< for its holds and reservations; sends to this actor
  note_line notes;
  allocator_actor space;
  policy_actor policy;
  index_keeper keeper; ///< of a durable tier
  std::shared_ptr<metrics::tier_probe> probe;
  tier_kind kind = tier_kind::none;
  std::shared_ptr<eviction_round> round; ///< while one is in progress
  bool owes_notice = false;              ///< one failed, and nothing became evictable since
};

using self_pointer = caf::stateful_actor<tier_shell, runtime::short_turns<tier_actor::base>>*;

/// After every few batches, a mark: when it returns, the notes kept since are sent.
void mark_notes(self_pointer self);

/// Sends the notes that the policy has not received yet.
void tell_kept(self_pointer self) {
  for (policy_notes& batch : self->state.notes.take())
    self->send(self->state.policy, std::move(batch));
  mark_notes(self);
}

void mark_notes(self_pointer self) {
  if (!self->state.notes.mark_due())
    return;
  self->request(self->state.policy, caf::infinite, notes_mark{})
      .then(
          [self](notes_mark) {
            self->state.notes.marked();
            tell_kept(self);
          },
          [](const caf::error&) {}); // the policy has ended
}

void tell(self_pointer self, policy_notes notes) {
  if (notes.notes.empty() || !self->state.notes.admits(notes))
    return;
  self->send(self->state.policy, std::move(notes));
  mark_notes(self);
}

/// Call after every change: notifies policy and journals, returns freed space, and lets an allocator that
/// found nothing to evict try again if an object became evictable. `of`: the space of published objects.
void settle(self_pointer self, std::vector<extent> freed, const space_ptr& of = nullptr) {
  auto& state = self->state;
  if (auto changes = state.objects.take_changes(); !changes.empty())
    self->send(state.keeper, index_changes{std::move(changes), of, {}});
  tell(self, state.objects.take_notes());
  if (auto left = state.objects.take_retired(); !left.empty()) {
    uint64_t bytes = 0;
    for (const extent& one : left)
      bytes += one.size;
    state.probe->evicted(metrics::eviction_reason::retired, left.size(), bytes);
    freed.insert(freed.end(), left.begin(), left.end());
  }
  if (!freed.empty() && !(state.round && state.round->take_back(freed)))
    self->send(state.space, free_notice{std::move(freed)});
  if (state.objects.take_evictable()) {
    if (state.round)
      state.round->more_evictable();
    if (std::exchange(state.owes_notice, false))
      self->send(state.space, evictable_notice{});
  }
  state.probe->holds(state.objects.table().published());
  state.probe->leased(state.objects.leased_bytes());
}

// ---- a round of eviction, started by the allocator ----

void go_on(self_pointer self);

void ask_for_victims(self_pointer self) {
  auto& state = self->state;
  tell_kept(self); // the request must follow all earlier events
  self->request(state.policy, caf::infinite, state.round->question(state.kind))
      .then(
          [self](const victim_answer& named) {
            auto& round = *self->state.round;
            round.offer(named);
            round.choose(self->state.objects);
            go_on(self);
          },
          [self](const caf::error&) {
            self->state.round->give_up("the eviction policy has ended");
            go_on(self);
          });
}

void evict(self_pointer self) {
  auto& state = self->state;
  auto evicted = state.round->evict(state.objects);
  uint64_t freed_bytes = 0;
  for (const extent& freed : evicted.freed)
    freed_bytes += freed.size;
  state.probe->evicted(state.round->ahead() ? metrics::eviction_reason::ahead
                                            : metrics::eviction_reason::space,
                       evicted.freed.size(), freed_bytes);
  if (freed_bytes > state.round->missing_bytes())
    state.probe->evicted_too_much(freed_bytes - state.round->missing_bytes());
}

void go_on(self_pointer self) {
  auto& state = self->state;
  if (state.round->now() == eviction_round::stage::evicting)
    evict(self);
  settle(self, {}); // notes first, then the space, so that whoever gets the space finds an up-to-date policy
  if (state.round->now() == eviction_round::stage::asked) {
    ask_for_victims(self);
    return;
  }
  state.owes_notice = state.owes_notice || state.round->failed(); // an earlier one may have been for another
  if (state.round->failed())
    state.probe->found_no_victim();
  self->send(state.space, room_made{std::move(state.round)});
}

acquire_answer finish_acquire(self_pointer self, const acquire_request& request,
                              const residency::need& wanted, const std::vector<extent>& granted) {
  auto taken = self->state.objects.acquire(request, wanted, granted);
  acquire_answer answer;
  answer.states = std::move(taken.states);
  answer.places = std::move(taken.places);
  answer.held = std::make_shared<object_hold>(self->state.sink, std::move(taken.held));
  answer.reserved = std::make_shared<object_reservation>(self->state.sink, std::move(taken.reserved));
  answer.held_bytes = self->state.objects.table().held_bytes();
  settle(self, std::move(taken.unused));
  return answer;
}

caf::result<acquire_answer> acquire(self_pointer self, const acquire_request& request) {
  auto& state = self->state;
  auto wanted = state.objects.missing(request);
  if (wanted.sizes.empty())
    return finish_acquire(self, request, wanted, {});
  auto reply = make_answer<acquire_answer>(self);
  allocate_request space{wanted.sizes, request.may_wait, request.context};
  self->request(state.space, caf::infinite, std::move(space))
      .then(
          [self, reply, request, wanted](const allocate_answer& granted) mutable {
            if (granted.failure.code != errc::ok) {
              if (granted.failure.code == errc::no_space)
                self->state.probe->dropped(wanted.objects.size());
              reply.fail(granted.failure);
              return;
            }
            reply.deliver(finish_acquire(self, request, wanted, granted.extents));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the tier's allocator has ended"});
          });
  return reply.promise();
}

probe_answer probe(self_pointer self, const probe_request& request) {
  auto found = self->state.objects.probe(*request.objects, request.hold, request.note_access, request.range);
  probe_answer answer;
  answer.tier = self->state.kind;
  if (request.hold && found.hits != 0)
    answer.held = std::make_shared<object_hold>(self->state.sink, std::move(found.places));
  self->state.probe->hit(found.hits);
  self->state.probe->missed(found.present.size() - found.hits);
  answer.present = std::move(found.present);
  settle(self, {});
  return answer;
}

void discard(self_pointer self, const discard_notice& notice) {
  auto& state = self->state;
  uint64_t before = state.objects.discarded;
  auto freed = state.objects.discard(notice.ids);
  uint64_t discarded = state.objects.discarded - before;
  if (notice.why == discard_reason::unusable)
    state.objects.discarded = before; // no error of the tier
  uint64_t freed_bytes = 0;
  for (const extent& one : freed)
    freed_bytes += one.size;
  state.probe->evicted(notice.why == discard_reason::unusable ? metrics::eviction_reason::unusable
                                                              : metrics::eviction_reason::damaged,
                       discarded, freed_bytes);
  settle(self, std::move(freed));
}

/// The walk is over: in a durable tier the journals raise the epoch.
void finish_clear(self_pointer self, const std::shared_ptr<clear_turns>& work) {
  auto& state = self->state;
  const auto& sum = work->walk.sum;
  state.probe->evicted(metrics::eviction_reason::cleared, sum.objects, sum.bytes);
  clear_answer answer{{}, sum.objects, sum.bytes, {}};
  if (!state.objects.durable()) {
    work->reply.deliver(std::move(answer));
    return;
  }
  self->request(state.keeper, caf::infinite,
                forget_request{work->walk.space, state.objects.epoch(), work->request.fingerprint})
      .then(
          [self, work, answer](const forget_answer& forgotten) mutable {
            self->state.objects.begin_epoch(forgotten.epoch);
            answer.failure = forgotten.failure;
            if (forgotten.missed != volume_id{})
              answer.missed = pending_clear{{}, forgotten.missed, forgotten.epoch};
            work->reply.deliver(std::move(answer));
          },
          [work](const caf::error&) {
            work->reply.fail({errc::internal, "the journal of the tier's index has ended"});
          });
}

/// Part of the slots at a time: other requests are served in between.
void clear_on(self_pointer self, const std::shared_ptr<clear_turns>& work) {
  bool more = self->state.objects.clear_step(work->walk);
  settle(self, std::move(work->walk.sum.freed));
  if (more)
    self->send(self, clear_turn_notice{work});
  else
    finish_clear(self, work);
}

caf::result<clear_answer> clear(self_pointer self, const clear_request& request) {
  auto reply = make_answer<clear_answer>(self);
  auto promise = reply.promise();
  auto work = std::make_shared<clear_turns>(clear_turns{request, {request.space, 0, {}}, std::move(reply)});
  clear_on(self, work);
  return promise;
}

image_answer image(self_pointer self, const image_request& request) {
  auto& objects = self->state.objects;
  image_answer part;
  part.objects = objects.image(request.first, request.count);
  std::erase_if(part.objects, [&](const index_change& change) {
    return change.record.offset - request.within.offset >= request.within.size;
  });
  part.next = request.first + request.count;
  part.last = part.next >= objects.table().slots();
  return part;
}

caf::result<tier_report> report(self_pointer self) {
  auto reply = make_answer<tier_report>(self);
  self->request(self->state.space, caf::infinite, usage_request{})
      .then(
          [self, reply](const usage_answer& usage) mutable {
            auto& state = self->state;
            tier_report answer;
            answer.kind = state.kind;
            answer.allocator = usage.allocator;
            answer.usage = usage.usage;
            answer.room_bytes = usage.room_bytes;
            answer.waiting = usage.waiting;
            answer.objects = state.objects.table().published();
            answer.held_objects = state.objects.table().held();
            answer.hits = state.probe->hits();
            answer.misses = state.probe->misses();
            answer.evictions = state.objects.evictions;
            answer.errors = state.objects.discarded;
            answer.bytes_read = state.probe->read_bytes();
            answer.bytes_written = state.probe->written_bytes();
            reply.deliver(std::move(answer));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the tier's allocator has ended"});
          });
  return reply.promise();
}

tier_actor::behavior_type tier_behavior(self_pointer self, std::shared_ptr<tier_arguments> arguments) {
  auto& state = self->state;
  state.kind = arguments->kind;
  state.objects = arguments->objects ? std::move(*arguments->objects) : residency(arguments->kind);
  state.objects.charges(arguments->leases);
  state.sink = std::make_shared<actor_release_sink>(caf::actor_cast<caf::actor>(self));
  state.keeper = arguments->keeper;
  state.policy = arguments->policy;
  state.probe = arguments->probe;
  state.space =
      spawn_allocator(self->system(), {std::move(arguments->space), caf::actor_cast<tier_actor>(self),
                                       arguments->free_ahead_bytes, arguments->waiting_max, state.probe});
  self->link_to(state.space);
  if (state.keeper)
    self->send(state.keeper, start_journal{caf::actor_cast<tier_actor>(self)});
  settle(self, {});
  return {
      [self](const probe_request& request) { return probe(self, request); },
      [self](const access_notice& notice) {
        self->state.objects.use(notice.ids);
        settle(self, {});
      },
      [self](const acquire_request& request) { return acquire(self, request); },
      [self](const publish_request& request) {
        publish_answer answer;
        auto places = self->state.objects.publish(request.places, request.hold, request.inference);
        self->state.probe->admitted(static_cast<uint64_t>(std::count_if(
            places.begin(), places.end(), [](const object_place& place) { return place.present(); })));
        if (request.hold)
          answer.held = std::make_shared<object_hold>(self->state.sink, std::move(places));
        settle(self, {}, request.in);
        return answer;
      },
      [self](const await_request& request) {
        auto reply = make_answer<await_answer>(self);
        self->state.objects.await(*request.objects, request.context, [reply](awaited_end end) mutable {
          await_answer answer;
          answer.abandoned = end.abandoned;
          if (end.code != errc::ok)
            answer.failure = {end.code,
                              "the request ended while it waited for another that writes the same objects"};
          reply.deliver(std::move(answer));
        });
        return reply.promise();
      },
      [self](const release_notice& notice) { settle(self, self->state.objects.release(notice.ids)); },
      [self](const abandon_notice& notice) { settle(self, self->state.objects.abandon(notice.ids)); },
      [self](const detach_notice& notice) {
        self->state.objects.detach(notice.ids);
        settle(self, {});
      },
      [self](const discard_notice& notice) { discard(self, notice); },
      [self](const confirm_request& request) {
        return confirm_answer{{}, self->state.objects.confirm(request.ids)};
      },
      [self](const clear_request& request) { return clear(self, request); },
      [self](const clear_turn_notice& notice) { clear_on(self, notice.work); },
      [self](const image_request& request) { return image(self, request); },
      [self](const sweep_notice& notice) {
        self->state.objects.sweep();
        self->send(self->state.space, notice);
      },
      [self](const room_request& request) {
        self->state.round = request.round;
        ask_for_victims(self);
      },
      [self](const grow_notice& notice) { self->send(self->state.space, notice); },
      [self](const retire_request& request) {
        auto promise =
            self->delegate(self->state.space, request); // first, so that nothing new is placed there
        self->state.objects.retire(request.range);
        settle(self, {});
        return promise;
      },
      [self](const empty_spaces_request& request) {
        empty_spaces_answer answer;
        for (space_id one : request.of)
          if (!self->state.objects.table().has(one))
            answer.empty.push_back(one);
        return answer;
      },
      [self](const forget_spaces_notice& notice) {
        if (self->state.keeper)
          self->send(self->state.keeper, index_changes{{}, nullptr, notice.gone});
      },
      [self](const tier_status_request&) { return report(self); },
  };
}

} // namespace

tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments) {
  return system.spawn(tier_behavior, std::make_shared<tier_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
