#include "actors/tier/tier_actor.hpp"

#include "actors/tier/actor_release_sink.hpp"
#include "actors/tier/allocator_actor.hpp"
#include "coroutine/answer.hpp"
#include "runtime/short_turns.hpp"
#include "tier/long_notices.hpp"
#include "tier/space_refusal.hpp"
#include "tier/tier_changes.hpp"
#include "tier/tier_clear.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

/// A clear in progress.
struct clear_turns {
  tier_clear work;
  answer<clear_answer> reply;
};

namespace {

struct tier_shell {
  const char* name = "tier";
  tier_changes changes;
  long_notices line;     ///< not applied yet; a `next_part_notice` is under way unless it is empty
  release_sink_ptr sink; ///< for its holds and reservations; sends to this actor
  allocator_actor space;
  policy_actor policy;
  index_keeper keeper; ///< of a durable tier
  std::shared_ptr<metrics::tier_probe> probe;

  residency& objects() { return changes.objects(); }
};

using tier_pointer = caf::stateful_actor<tier_shell, runtime::short_turns<tier_actor::base>>*;

// ---- after every change ----

void send_kept_notes(tier_pointer self);

/// Follows every few batches of notes. When it returns, the notes kept since are sent.
void send_mark(tier_pointer self) {
  self->request(self->state.policy, caf::infinite, notes_mark{})
      .then(
          [self](notes_mark) {
            self->state.changes.marked();
            send_kept_notes(self);
          },
          [](const caf::error&) {}); // the policy has ended
}

void send_kept_notes(tier_pointer self) {
  auto kept = self->state.changes.take_kept_notes();
  for (policy_notes& batch : kept.batches)
    self->send(self->state.policy, std::move(batch));
  if (kept.mark)
    send_mark(self);
}

/// Call after every change. `of`: the space of published objects.
void settle(tier_pointer self, std::vector<extent> freed = {}, const space_ptr& of = nullptr) {
  auto& state = self->state;
  auto news = state.changes.settle(std::move(freed));
  if (!news.records.empty())
    self->send(state.keeper, index_changes{std::move(news.records), of, {}});
  if (!news.notes.notes.empty())
    self->send(state.policy, std::move(news.notes));
  if (news.mark)
    send_mark(self);
  if (news.retired_objects != 0)
    state.probe->evicted(metrics::eviction_reason::retired, news.retired_objects, news.retired_bytes);
  if (!news.freed.empty())
    self->send(state.space, free_notice{std::move(news.freed)});
  if (news.evictable)
    self->send(state.space, evictable_notice{});
  state.probe->holds(state.objects().table().published());
  state.probe->leased(state.objects().leased_bytes());
}

// ---- a round of eviction ----

void go_on(tier_pointer self);

void ask_for_victims(tier_pointer self) {
  auto& state = self->state;
  send_kept_notes(self); // the request must follow all earlier events
  self->request(state.policy, caf::infinite, state.changes.question())
      .then(
          [self](const victim_answer& named) {
            self->state.changes.choose(named);
            go_on(self);
          },
          [self](const caf::error&) {
            self->state.changes.give_up("the eviction policy has ended");
            go_on(self);
          });
}

void go_on(tier_pointer self) {
  auto& state = self->state;
  if (auto evicted = state.changes.evict()) {
    state.probe->evicted(evicted->ahead ? metrics::eviction_reason::ahead : metrics::eviction_reason::space,
                         evicted->objects, evicted->bytes);
    if (evicted->excess_bytes != 0)
      state.probe->evicted_too_much(evicted->excess_bytes);
  }
  settle(self); // first, so that whoever gets the space finds an up-to-date policy
  auto ended = state.changes.take_ended();
  if (!ended) {
    ask_for_victims(self);
    return;
  }
  if (ended->failed())
    state.probe->found_no_victim();
  self->send(state.space, room_made{std::move(ended)});
}

void on_room_request(tier_pointer self, const room_request& request) {
  self->state.changes.begin(request.round);
  ask_for_victims(self);
}

// ---- requests ----

acquire_answer finish_acquire(tier_pointer self, const acquire_request& request,
                              const residency::need& wanted, const std::vector<extent>& granted) {
  auto taken = self->state.objects().acquire(request, wanted, granted);
  acquire_answer answer;
  answer.states = std::move(taken.states);
  answer.places = std::move(taken.places);
  answer.held = std::make_shared<object_hold>(self->state.sink, std::move(taken.held));
  answer.reserved = std::make_shared<object_reservation>(self->state.sink, std::move(taken.reserved));
  answer.held_bytes = self->state.objects().table().held_bytes();
  settle(self, std::move(taken.unused));
  return answer;
}

void count_refusal(tier_pointer self, const acquire_request& request, const error& failure, size_t objects) {
  const auto& probe = self->state.probe;
  switch (refusal_of(request, failure)) {
    case space_refusal::prefetch: return probe->prefetch_refused(objects);
    case space_refusal::dropped: return probe->dropped(objects);
    case space_refusal::no_room: return probe->refused(metrics::refusal_reason::no_room, objects);
    case space_refusal::none: return;
  }
}

caf::result<acquire_answer> on_acquire(tier_pointer self, const acquire_request& request) {
  auto& state = self->state;
  auto wanted = state.objects().missing(request);
  if (wanted.sizes.empty())
    return finish_acquire(self, request, wanted, {});
  auto reply = make_answer<acquire_answer>(self);
  allocate_request space{wanted.sizes, request.may_wait, request.context};
  self->request(state.space, caf::infinite, std::move(space))
      .then(
          [self, reply, request, wanted](const allocate_answer& granted) mutable {
            if (granted.failure.code != errc::ok) {
              count_refusal(self, request, granted.failure, wanted.objects.size());
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

probe_answer on_probe(tier_pointer self, const probe_request& request) {
  auto found =
      self->state.objects().probe(*request.objects, request.hold, request.note_access, request.range);
  probe_answer answer;
  answer.tier = self->state.changes.kind();
  if (request.hold && found.hits != 0)
    answer.held = std::make_shared<object_hold>(self->state.sink, std::move(found.places));
  answer.held_bytes = self->state.objects().table().held_bytes();
  self->state.probe->hit(found.hits);
  self->state.probe->missed(found.present.size() - found.hits);
  answer.present = std::move(found.present);
  settle(self);
  return answer;
}

publish_answer on_publish(tier_pointer self, const publish_request& request) {
  auto& state = self->state;
  publish_answer answer;
  auto places = state.objects().publish(request.places, request.hold, request.inference);
  state.probe->admitted(count_present(places));
  if (request.hold)
    answer.held = std::make_shared<object_hold>(state.sink, std::move(places));
  settle(self, {}, request.in);
  return answer;
}

caf::result<await_answer> on_await(tier_pointer self, const await_request& request) {
  auto reply = make_answer<await_answer>(self);
  self->state.objects().await(*request.objects, request.context,
                              [reply](const awaited_end& end) mutable { reply.deliver(to_answer(end)); });
  return reply.promise();
}

metrics::eviction_reason reason_of(discard_reason why) {
  switch (why) {
    case discard_reason::unusable: return metrics::eviction_reason::unusable;
    case discard_reason::unwanted: return metrics::eviction_reason::cleared;
    default: return metrics::eviction_reason::damaged;
  }
}

void take_part(tier_pointer self, long_notices& line) {
  auto& state = self->state;
  auto done = line.step(state.objects());
  if (done.discarded != 0)
    state.probe->evicted(reason_of(done.why), done.discarded, bytes_of(done.freed));
  settle(self, std::move(done.freed));
}

/// Part of the objects at a time: other requests are served in between.
void on_next_part(tier_pointer self) {
  take_part(self, self->state.line);
  if (!self->state.line.empty())
    self->send(self, next_part_notice{});
}

/// A short notice is applied at once. Takes what the notice has: nobody else has it.
template <class Notice>
void on_notice(tier_pointer self, Notice& notice) {
  auto& line = self->state.line;
  if (notice.ids.size() <= long_notices::step_objects) {
    long_notices one;
    one.add(std::move(notice));
    take_part(self, one);
    return;
  }
  if (line.empty())
    self->send(self, next_part_notice{});
  line.add(std::move(notice));
}

caf::result<retire_answer> on_retire(tier_pointer self, const retire_request& request) {
  auto promise = self->delegate(self->state.space, request); // first, so that nothing new is placed there
  self->state.objects().retire(request.range);
  settle(self);
  return promise;
}

// ---- clear ----

/// The walk is over: in a durable tier the journals raise the epoch.
void finish_clear(tier_pointer self, const std::shared_ptr<clear_turns>& clear) {
  auto& state = self->state;
  clear_answer removed = clear->work.removed();
  state.probe->evicted(metrics::eviction_reason::cleared, removed.objects, removed.bytes);
  if (!state.objects().durable()) {
    clear->reply.deliver(std::move(removed));
    return;
  }
  self->request(state.keeper, caf::infinite, clear->work.forget(state.objects()))
      .then(
          [self, clear](const forget_answer& forgotten) {
            clear->reply.deliver(clear->work.forgotten(self->state.objects(), forgotten));
          },
          [clear](const caf::error&) {
            clear->reply.fail({errc::internal, "the journal of the tier's index has ended"});
          });
}

/// Part of the objects at a time: other requests are served in between.
void on_clear_turn(tier_pointer self, const std::shared_ptr<clear_turns>& clear) {
  bool more = clear->work.step(self->state.objects());
  settle(self, clear->work.take_freed());
  if (more)
    self->send(self, clear_turn_notice{clear});
  else
    finish_clear(self, clear);
}

caf::result<clear_answer> on_clear(tier_pointer self, const clear_request& request) {
  auto reply = make_answer<clear_answer>(self);
  auto promise = reply.promise();
  on_clear_turn(self, std::make_shared<clear_turns>(clear_turns{tier_clear(request), std::move(reply)}));
  return promise;
}

// ---- spaces, status ----

void on_forget_spaces(tier_pointer self, const forget_spaces_notice& notice) {
  if (self->state.keeper)
    self->send(self->state.keeper, index_changes{{}, nullptr, notice.gone});
}

caf::result<tier_report> on_status(tier_pointer self) {
  auto reply = make_answer<tier_report>(self);
  self->request(self->state.space, caf::infinite, usage_request{})
      .then(
          [self, reply](const usage_answer& usage) mutable {
            auto& state = self->state;
            tier_report answer = state.changes.report(usage);
            answer.hits = state.probe->hits();
            answer.misses = state.probe->misses();
            answer.bytes_read = state.probe->read_bytes();
            answer.bytes_written = state.probe->written_bytes();
            reply.deliver(std::move(answer));
          },
          [reply](const caf::error&) mutable {
            reply.fail({errc::internal, "the tier's allocator has ended"});
          });
  return reply.promise();
}

tier_actor::behavior_type tier_behavior(tier_pointer self, std::shared_ptr<tier_arguments> arguments) {
  auto& state = self->state;
  state.changes = tier_changes(arguments->kind, arguments->objects ? std::move(*arguments->objects)
                                                                   : residency(arguments->kind));
  state.objects().charges(arguments->leases);
  state.sink = std::make_shared<actor_release_sink>(caf::actor_cast<caf::actor>(self), arguments->ends);
  state.keeper = arguments->keeper;
  state.policy = arguments->policy;
  state.probe = arguments->probe;
  state.space =
      spawn_allocator(self->system(), {std::move(arguments->space), caf::actor_cast<tier_actor>(self),
                                       arguments->free_ahead_bytes, arguments->waiting_max, state.probe});
  self->link_to(state.space);
  if (state.keeper)
    self->send(state.keeper, start_journal{caf::actor_cast<tier_actor>(self)});
  settle(self);
  return {
      [self](const probe_request& request) { return on_probe(self, request); },
      [self](const access_notice& notice) {
        self->state.objects().use(notice.ids);
        settle(self);
      },
      [self](const acquire_request& request) { return on_acquire(self, request); },
      [self](const publish_request& request) { return on_publish(self, request); },
      [self](const await_request& request) { return on_await(self, request); },
      [self](release_notice& notice) { on_notice(self, notice); },
      [self](const abandon_notice& notice) { settle(self, self->state.objects().abandon(notice.ids)); },
      [self](const detach_notice& notice) {
        self->state.objects().detach(notice.ids);
        settle(self);
      },
      [self](discard_notice& notice) { on_notice(self, notice); },
      [self](const confirm_request& request) {
        return confirm_answer{{}, self->state.objects().confirm(request.ids)};
      },
      [self](const clear_request& request) { return on_clear(self, request); },
      [self](next_part_notice) { on_next_part(self); },
      [self](const clear_turn_notice& notice) { on_clear_turn(self, notice.work); },
      [self](const image_request& request) { return self->state.objects().image(request); },
      [self](const sweep_notice& notice) {
        self->state.objects().sweep();
        self->send(self->state.space, notice);
      },
      [self](const room_request& request) { on_room_request(self, request); },
      [self](const grow_notice& notice) { self->send(self->state.space, notice); },
      [self](const retire_request& request) { return on_retire(self, request); },
      [self](const empty_spaces_request& request) {
        return empty_spaces_answer{{}, self->state.objects().empty_of(request.of)};
      },
      [self](const forget_spaces_notice& notice) { on_forget_spaces(self, notice); },
      [self](const tier_status_request&) { return on_status(self); },
  };
}

} // namespace

tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments) {
  return system.spawn(tier_behavior, std::make_shared<tier_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
