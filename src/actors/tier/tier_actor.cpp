#include "actors/tier/tier_actor.hpp"

#include "actors/answer.hpp"
#include "actors/tier/allocator_actor.hpp"
#include "actors/tier/note_line.hpp"
#include "actors/tier/tier_state.hpp"
#include "actors/tier/victim_choice.hpp"
#include "runtime/short_turns.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

struct tier_shell {
  const char* name = "tier";
  tier_state objects;
  note_line notes;
  allocator_actor space;
  policy_actor policy;
  std::vector<caf::actor> journals;
  path_map map{std::array<uint64_t, 1>{UINT64_MAX}};
  std::shared_ptr<metrics::tier_probe> probe;
  tier_kind kind = tier_kind::none;
  bool exhausted = false; ///< the allocator was told that nothing may leave
  bool evictable =
      false; ///< something may leave that the policy did not know of when it was asked for victims
};

using self_pointer = caf::stateful_actor<tier_shell, runtime::short_turns<tier_actor::base>>*;

caf::actor handle_of(self_pointer self) { return caf::actor_cast<caf::actor>(self); }

/// Behind every so many batches, a mark: when it is back, what was kept since goes out.
void mark_notes(self_pointer self);

/// What the policy has not been told yet.
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
          [](const caf::error&) {}); // the policy has ended: nobody is left to be told
}

void tell(self_pointer self, policy_notes notes) {
  if (notes.notes.empty() || !self->state.notes.admits(notes))
    return;
  self->send(self->state.policy, std::move(notes));
  mark_notes(self);
}

/// Each journal hears of what lies on its path.
void tell_journals(self_pointer self, std::vector<index_change> changes, const space_ptr& of) {
  auto& state = self->state;
  if (state.journals.size() == 1) {
    caf::anon_send(state.journals.front(), index_changes{std::move(changes), of});
    return;
  }
  std::vector<std::vector<index_change>> own(state.journals.size());
  for (index_change& change : changes) {
    size_t path = state.map.path_of(change.record.offset);
    change.record.offset -= state.map.begin(path);
    own[path].push_back(std::move(change));
  }
  for (size_t path = 0; path < own.size(); ++path)
    if (!own[path].empty())
      caf::anon_send(state.journals[path], index_changes{std::move(own[path]), of});
}

/// After every change: policy and journal hear of it, freed space goes back, and an allocator that found nothing to evict
/// gets another try when something became evictable. `of`: the space of what was published.
void settle(self_pointer self, std::vector<extent> freed, const space_ptr& of = nullptr) {
  auto& state = self->state;
  if (auto changes = state.objects.take_changes(); !changes.empty())
    tell_journals(self, std::move(changes), of);
  tell(self, state.objects.take_notes());
  if (auto left = state.objects.take_retired(); !left.empty()) {
    uint64_t bytes = 0;
    for (const extent& one : left)
      bytes += one.size;
    state.probe->evicted(metrics::eviction_reason::retired, left.size(), bytes);
    freed.insert(freed.end(), left.begin(), left.end());
  }
  if (!freed.empty())
    self->send(state.space, free_notice{std::move(freed)});
  if (state.objects.take_evictable()) {
    state.evictable = true;
    if (std::exchange(state.exhausted, false))
      self->send(state.space, room_made{});
  }
  state.probe->holds(state.objects.table().published());
}

/// `asked`: bytes of victims to be named. More than are missing where what is free is not one run.
void make_room(self_pointer self, const room_request& wanted, uint64_t asked);

constexpr uint64_t asked_growth = 4;

void no_room(self_pointer self, bool for_one) {
  self->state.exhausted = true;
  self->state.probe->found_no_victim();
  self->send(self->state.space, room_made{{}, true, self->state.objects.describe_holders(), for_one});
}

void evict(self_pointer self, const room_request& wanted, uint64_t asked,
           const std::vector<entry_key>& victims) {
  auto& state = self->state;
  auto evicted = state.objects.evict(victims);
  uint64_t freed_bytes = 0;
  for (const extent& freed : evicted.freed)
    freed_bytes += freed.size;
  state.probe->evicted(wanted.needed == 0 ? metrics::eviction_reason::ahead : metrics::eviction_reason::space,
                       evicted.freed.size(), freed_bytes);
  if (freed_bytes > wanted.bytes)
    state.probe->evicted_too_much(freed_bytes - wanted.bytes);
  // Victims were leased meanwhile, or the first that may leave came after the question: the policy hears of it first,
  // and names others.
  if (evicted.freed.empty() && (evicted.refused != 0 || state.evictable)) {
    settle(self, {});
    make_room(self, wanted, asked);
    return;
  }
  // Notes first, then the space: whoever gets the space finds a policy that knows.
  state.objects.take_evictable();
  settle(self, {});
  if (evicted.freed.empty())
    no_room(self, false);
  else
    self->send(state.space, room_made{std::move(evicted.freed), false, {}, false});
}

/// The allocator has said which of the offered victims serve the request that waits.
void evict_chosen(self_pointer self, const room_request& wanted, uint64_t asked, const victim_answer& named,
                  const tier_state::offer& offer, const choose_answer& choice) {
  auto& state = self->state;
  if (!choice.waits) {
    self->send(state.space, room_made{});
  } else if (!choice.chosen.empty()) {
    std::vector<size_t> chosen;
    for (size_t i : choice.chosen)
      chosen.push_back(offer.victims[i]);
    evict(self, wanted, asked, with_descendants(named, chosen));
  } else if (named.bytes >= asked) {
    make_room(self, wanted, asked * asked_growth);
  } else if (state.evictable) {
    settle(self, {});
    make_room(self, wanted, asked);
  } else {
    no_room(self, true); // all that may leave would not be enough, so it stays
  }
}

void make_room(self_pointer self, const room_request& wanted, uint64_t asked) {
  auto& state = self->state;
  state.evictable = false;
  tell_kept(self); // the question stands behind all that happened before it
  auto lost = [self](const caf::error&) {
    self->send(self->state.space, room_made{{}, true, "the eviction policy has ended", false});
  };
  self->request(state.policy, caf::infinite, victim_request{state.kind, asked, wanted.inference})
      .then(
          [self, wanted, asked](const victim_answer& named) {
            auto offer = self->state.objects.offered(named.victims);
            if (wanted.needed == 0 || offer.extents.empty()) {
              evict(self, wanted, asked, named.victims);
              return;
            }
            choose_request question{offer.extents};
            self->request(self->state.space, caf::infinite, std::move(question))
                .then(
                    [self, wanted, asked, named, offer = std::move(offer)](const choose_answer& choice) {
                      evict_chosen(self, wanted, asked, named, offer, choice);
                    },
                    [](const caf::error&) {}); // the allocator has ended, and with it the tier
          },
          lost);
}

acquire_answer finish_acquire(self_pointer self, const acquire_request& request,
                              const tier_state::need& wanted, const std::vector<extent>& granted) {
  auto taken = self->state.objects.acquire(request, wanted, granted);
  acquire_answer answer;
  answer.states = std::move(taken.states);
  answer.places = std::move(taken.places);
  answer.held = std::make_shared<object_hold>(handle_of(self), std::move(taken.held));
  answer.reserved = std::make_shared<object_reservation>(handle_of(self), std::move(taken.reserved));
  settle(self, std::move(taken.unused));
  return answer;
}

caf::result<acquire_answer> acquire(self_pointer self, const acquire_request& request) {
  auto& state = self->state;
  auto wanted = state.objects.missing(request);
  if (wanted.sizes.empty())
    return finish_acquire(self, request, wanted, {});
  auto reply = make_answer<acquire_answer>(self);
  allocate_request space{wanted.sizes, request.may_wait, request.context, request.may_evict};
  self->request(state.space, caf::infinite, std::move(space))
      .then(
          [self, reply, request, wanted](const allocate_answer& granted) mutable {
            if (granted.failure.code != errc::ok) {
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
    answer.held = std::make_shared<object_hold>(handle_of(self), std::move(found.places));
  self->state.probe->hit(found.hits);
  self->state.probe->missed(found.present.size() - found.hits);
  answer.present = std::move(found.present);
  settle(self, {});
  return answer;
}

caf::result<clear_answer> clear(self_pointer self, const clear_request& request) {
  auto& state = self->state;
  auto cleared = state.objects.clear(request.space);
  state.probe->evicted(metrics::eviction_reason::cleared, cleared.objects, cleared.bytes);
  settle(self, std::move(cleared.freed));
  clear_answer answer{{}, cleared.objects, cleared.bytes};
  if (!state.objects.durable())
    return answer;
  auto reply = make_answer<clear_answer>(self);
  auto sum = std::make_shared<clear_answer>(std::move(answer));
  auto waiting_for = std::make_shared<size_t>(state.journals.size());
  auto one_less = [self, reply, sum, waiting_for](const forget_answer& forgotten) mutable {
    self->state.objects.begin_epoch(forgotten.epoch);
    if (forgotten.failure.code != errc::ok) {
      sum->failure.code = forgotten.failure.code;
      sum->failure.text += (sum->failure.text.empty() ? "" : "; ") + forgotten.failure.text;
    }
    if (--*waiting_for == 0)
      reply.deliver(std::move(*sum));
  };
  for (const caf::actor& journal : state.journals)
    self->request(journal, caf::infinite, forget_request{request.space, state.objects.epoch()})
        .then(one_less, [one_less](const caf::error&) mutable {
          one_less({{errc::internal, "the journal of the tier has ended"}, 0});
        });
  return reply.promise();
}

image_answer image(self_pointer self, const image_request& request) {
  auto& objects = self->state.objects;
  image_answer part;
  part.objects = objects.image(request.first, request.count);
  const path_map& map = self->state.map;
  if (map.paths() != 1) {
    std::erase_if(part.objects, [&](const index_change& change) {
      return map.path_of(change.record.offset) != request.path;
    });
    for (index_change& change : part.objects)
      change.record.offset -= map.begin(request.path);
  }
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
  state.objects = arguments->objects ? std::move(*arguments->objects) : tier_state(arguments->kind);
  state.journals = arguments->journals;
  state.map = arguments->map;
  state.policy = arguments->policy;
  state.probe = arguments->probe;
  state.space =
      spawn_allocator(self->system(), {std::move(arguments->space), caf::actor_cast<tier_actor>(self),
                                       arguments->free_ahead_bytes, arguments->waiting_max, state.probe});
  self->link_to(state.space);
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
          answer.held = std::make_shared<object_hold>(handle_of(self), std::move(places));
        settle(self, {}, request.in);
        return answer;
      },
      [self](const await_request& request) {
        auto reply = make_answer<await_answer>(self);
        self->state.objects.await(*request.objects, request.context, [reply](errc code) mutable {
          await_answer answer;
          if (code != errc::ok)
            answer.failure = {code,
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
      [self](const discard_notice& notice) {
        self->state.probe->evicted(metrics::eviction_reason::damaged, notice.ids.size(), 0);
        settle(self, self->state.objects.discard(notice.ids));
      },
      [self](const confirm_request& request) {
        return confirm_answer{{}, self->state.objects.confirm(request.ids)};
      },
      [self](const clear_request& request) { return clear(self, request); },
      [self](const image_request& request) { return image(self, request); },
      [self](const sweep_notice& notice) {
        self->state.objects.sweep();
        self->send(self->state.space, notice);
      },
      [self](const room_request& request) {
        make_room(self, request, request.bytes != 0 ? request.bytes : request.needed);
      },
      [self](const grow_notice& notice) { self->send(self->state.space, notice); },
      [self](const retire_request& request) {
        auto promise = self->delegate(self->state.space, request); // first, so that nothing new comes there
        self->state.objects.retire(request.range);
        settle(self, {});
        return promise;
      },
      [self](const tier_status_request&) { return report(self); },
  };
}

} // namespace

tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments) {
  return system.spawn(tier_behavior, std::make_shared<tier_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
