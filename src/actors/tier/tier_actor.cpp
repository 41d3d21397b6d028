#include "actors/tier/tier_actor.hpp"

#include "actors/tier/tier_shell.hpp"
#include "runtime/answer.hpp"
#include "tier/objects/awaited_objects.hpp"
#include "tier/objects/tier_changes.hpp"
#include "tier/objects/tier_clear.hpp"
#include "tier/quota/quota_line.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace terrace::actors {

/// A clear in progress.
struct clear_turns {
  tier_clear work;
  answer<clear_answer> reply;
  bool walked = false; ///< all objects have been looked at
};

namespace {

// ---- requests ----

probe_answer on_probe(tier_pointer self, const probe_request& request) {
  auto found = self->state.objects().probe(request);
  probe_answer answer;
  answer.tier = self->state.changes.kind();
  if (request.hold && found.hits != 0)
    answer.held = std::make_shared<object_hold>(self->state.sink, std::move(found.places));
  answer.held_bytes = self->state.objects().table().totals().held.bytes;
  if (request.counts) {
    self->state.probe->hit(found.hits);
    self->state.probe->missed(found.present.size() - found.hits);
  }
  answer.present = std::move(found.present);
  return answer;
}

publish_answer on_publish(tier_pointer self, const publish_request& request) {
  auto& state = self->state;
  publish_answer answer;
  state.objects().departures().origins().remember(request.space, state.objects().table());
  auto places = state.objects().publish(request.places, request.hold, request.inference);
  answer.published = count_present(places);
  state.probe->admitted(answer.published);
  if (request.hold)
    answer.held = std::make_shared<object_hold>(state.sink, std::move(places));
  state.published_in = request.space;
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
    case discard_reason::moved:
    case discard_reason::replaced:
    case discard_reason::unwanted: return metrics::eviction_reason::cleared;
    default: return metrics::eviction_reason::damaged;
  }
}

void take_part(tier_pointer self, long_notices& line) {
  auto& state = self->state;
  auto done = line.step(state.objects());
  if (done.discarded != 0)
    state.probe->evicted(reason_of(done.why), done.discarded, bytes_of(done.freed));
  state.changes.free(done.freed);
}

/// Applies part of the objects at a time, so that other requests are served in between.
void on_next_part(tier_pointer self) {
  take_part(self, self->state.line);
  if (!self->state.line.empty())
    self->send(self, next_part_notice{});
}

/// Applies a short notice at once. Takes its contents, because nobody else has it.
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

remove_answer on_remove(tier_pointer self, const remove_request& request) {
  auto done = self->state.objects().remove(request);
  if (done.of.objects != 0)
    self->state.probe->evicted(metrics::eviction_reason::cleared, done.of.objects, done.of.bytes);
  self->state.changes.free(done.of.freed);
  return {{}, std::move(done.removed), done.pending, done.of.objects, done.of.bytes};
}

caf::result<retire_answer> on_retire(tier_pointer self, const retire_request& request) {
  auto promise = self->delegate(self->state.space, request); // first, so that nothing new is placed there
  self->state.objects().departures().retire(request.range);
  return promise;
}

// ---- clear ----

/// The walk is over: in a durable tier the journals raise the epoch, unless what is being written stays.
void finish_clear(tier_pointer self, const std::shared_ptr<clear_turns>& clear) {
  auto& state = self->state;
  clear_answer removed = clear->work.removed();
  state.probe->evicted(metrics::eviction_reason::cleared, removed.objects, removed.bytes);
  if (!clear->work.is_told(state.objects())) {
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

/// Clears part of the objects at a time, so that other requests are served in between. The last turn comes after the
/// journals have been told of all of them.
void on_clear_turn(tier_pointer self, const std::shared_ptr<clear_turns>& clear) {
  if (clear->walked) {
    finish_clear(self, clear);
    return;
  }
  clear->walked = !clear->work.step(self->state.objects());
  self->state.changes.free(clear->work.take_freed());
  self->send(self, clear_turn_notice{clear});
}

caf::result<clear_answer> on_clear(tier_pointer self, const clear_request& request) {
  auto reply = make_answer<clear_answer>(self);
  auto promise = reply.promise();
  on_clear_turn(self, std::make_shared<clear_turns>(clear_turns{tier_clear(request), std::move(reply)}));
  return promise;
}

// ---- journals, spaces, status ----

image_answer on_image(tier_pointer self, const image_request& request) {
  auto& objects = self->state.objects();
  image_answer part;
  part.objects = objects.durable()->image(objects.table(), request.first, request.count);
  std::erase_if(part.objects, [&](const index_change& change) {
    return change.record.offset - request.within.offset >= request.within.size;
  });
  part.next = request.first + request.count;
  part.last = part.next >= objects.table().slots();
  return part;
}

empty_spaces_answer on_empty_spaces(tier_pointer self, const empty_spaces_request& request) {
  empty_spaces_answer answer;
  for (space_id one : request.of)
    if (self->state.objects().table().totals().objects_of(one) == 0)
      answer.empty.push_back(one);
  return answer;
}

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
            if (state.quota) {
              answer.tenants = state.objects().shares().quotas()->report();
              answer.waiting += state.quota->waiting();
            }
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

list_objects_answer on_list(tier_pointer self, const list_objects_request& request) {
  const residency& objects = self->state.objects();
  list_objects_answer answer;
  const resident_table& table = objects.table();
  uint32_t end = request.first;
  end += std::min(table.slots() - std::min(end, table.slots()), list_objects_request::slots_max);
  for (answer.next = request.first;
       answer.next < end && answer.objects.size() < list_objects_request::objects_max; ++answer.next)
    if (const resident& object = table.at_slot(answer.next); readable(object.state()))
      answer.objects.push_back(object.key());
  answer.last = answer.next >= table.slots();
  return answer;
}

tier_actor::behavior_type tier_behavior(tier_pointer self, std::shared_ptr<tier_arguments> arguments) {
  auto& state = self->state;
  const tier_config& config = arguments->config;
  tier_start& start = arguments->start;
  state.changes = tier_changes(config.kind, std::move(start.objects));
  state.leases = arguments->leases;
  state.objects().charges(arguments->leases);
  if (arguments->quotas) {
    state.objects().shares().charge(arguments->quotas);
    state.quota = std::make_unique<quota_line>(*arguments->quotas, config.waiting_max);
  }
  state.sink = std::make_shared<actor_release_sink>(caf::actor_cast<caf::actor>(self), arguments->ends);
  state.log = arguments->log;
  state.objects().events().record_for(state.log);
  if (state.log && state.log->records() && state.objects().table().published() != 0)
    state.log->forget(); // nobody was told of its objects
  state.keeper = start.keeper;
  state.policy = arguments->policy;
  state.probe = arguments->probe;
  state.space = spawn_allocator(self->system(), {std::move(start.space), caf::actor_cast<tier_actor>(self),
                                                 config.free_ahead_bytes, config.waiting_max, state.probe});
  self->link_to(state.space);
  if (state.keeper)
    self->send(state.keeper,
               start_journal{caf::actor_cast<tier_actor>(self), state.objects().recount().take_recorded()});
  self->each_turn(nullptr, [self] { after_turn(self); });
  return self->in_turns(
      [self](const probe_request& request) { return on_probe(self, request); },
      [self](const access_notice& notice) { self->state.objects().use(notice); },
      [self](const acquire_request& request) { return on_acquire(self, request); },
      [self](const publish_request& request) { return on_publish(self, request); },
      [self](const await_request& request) { return on_await(self, request); },
      [self](release_notice& notice) { on_notice(self, notice); },
      [self](const abandon_notice& notice) {
        self->state.changes.free(self->state.objects().abandon(notice.ids));
      },
      [self](const detach_notice& notice) { self->state.objects().detach(notice.ids); },
      [self](discard_notice& notice) { on_notice(self, notice); },
      [self](const remove_request& request) { return on_remove(self, request); },
      [self](const confirm_request& request) {
        return confirm_answer{{}, self->state.objects().confirm(request.ids)};
      },
      [self](const clear_request& request) { return on_clear(self, request); },
      [self](next_part_notice) { on_next_part(self); },
      [self](const clear_turn_notice& notice) { on_clear_turn(self, notice.work); },
      [self](const image_request& request) { return on_image(self, request); },
      [self](const sweep_notice& notice) {
        self->state.objects().sweep();
        if (self->state.quota)
          self->state.quota->sweep();
        self->send(self->state.space, notice);
      },
      [self](const room_request& request) { self->state.next_round = request.round; },
      [self](const tier_joined_notice& notice) { on_tier_joined(self, notice); },
      [self](const written_notice& notice) { on_written(self, notice); },
      [self](const write_down_request& request) { return on_write_down(self, request); },
      [self](const quotas_changed_notice&) { on_quotas_changed(self); },
      [self](const leases_grew_notice&) { on_leases_grew(self); },
      [self](const grow_notice& notice) { self->send(self->state.space, notice); },
      [self](const retire_request& request) { return on_retire(self, request); },
      [self](const empty_spaces_request& request) { return on_empty_spaces(self, request); },
      [self](const forget_spaces_notice& notice) { on_forget_spaces(self, notice); },
      [self](const check_tier_request& request) { return on_check(self, request); },
      [self](const check_held_request& request) { return on_check_held(self, request); },
      [self](const end_check_notice& notice) { on_end_check(self, notice); },
      [self](check_slice_notice) { on_check_slice(self); },
      [self](const tier_status_request&) { return on_status(self); },
      [self](const list_objects_request& request) { return on_list(self, request); },
      [self](const count_objects_request& request) {
        return count_objects_answer{{}, self->state.objects().table().totals().objects_of(request.space)};
      });
}

} // namespace

tier_actor spawn_tier(caf::actor_system& system, tier_arguments arguments) {
  return system.spawn(tier_behavior, std::make_shared<tier_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
