#include "actors/transfer/store_actor.hpp"

#include "actors/transfer/transfer_steps.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

struct store_state : transfer_progress<store_job, store_result> {
  const char* name = "store";
  std::vector<bool> copied; ///< of the window's objects
  /// Leave to write the window to tiers below, by tier.
  std::vector<std::pair<const tier_parts*, credit_ptr>> credits;
};

using self_pointer = caf::stateful_actor<store_state>*;

void start_window(self_pointer self);
void acquire_window(self_pointer self);

void complete_window(self_pointer self) {
  auto& state = self->state;
  size_t per_chunk = state.job.objects_per_chunk;
  for (size_t i = 0; i < state.copied.size(); i += per_chunk) {
    auto first = state.copied.begin() + static_cast<ptrdiff_t>(i);
    bool any = std::find(first, first + static_cast<ptrdiff_t>(per_chunk), true) !=
               first + static_cast<ptrdiff_t>(per_chunk);
    ++(any ? state.result.stored_chunks : state.result.present_chunks);
  }
  state.begin = state.end;
  start_window(self);
}

/// Others are writing some of the window's objects: once they are done, see what is left to do.
void wait_for_others(self_pointer self) {
  auto& state = self->state;
  if (++state.attempts > window_attempts_max) {
    finish(self, {errc::busy, "other clients kept abandoning stores of the same chunks; try again"});
    return;
  }
  await_others(self, acquire_window);
}

/// `sums`: of the payloads that were copied, in their order, or none.
void publish_window(self_pointer self, const acquire_answer& acquired, const std::vector<uint64_t>& sums,
                    bool again) {
  auto& state = self->state;
  bool write_through = !state.credits.empty();
  std::vector<uint64_t> checksums(sums.empty() ? 0 : acquired.places.size());
  auto sum = sums.begin();
  publish_request request;
  if (state.job.context)
    request.inference = state.job.context->inference;
  request.hold = write_through;
  request.places.resize(acquired.places.size());
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    if (acquired.states[i] != acquired_state::reserved)
      continue;
    request.places[i] = acquired.places[i];
    if (sum != sums.end())
      checksums[i] = *sum++;
    state.copied[i] = true;
    state.result.bytes += acquired.places[i].payload_bytes;
    state.job.group->tiers().front().probe->written(acquired.places[i].payload_bytes);
  }
  // `acquired` stays alive until the answer: its reservation ends after the tier has published.
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self, acquired, again, checksums = std::move(checksums)](const publish_answer& answer) {
            auto& now = self->state;
            for (const auto& [tier, credit] : now.credits)
              self->send(tier->write_through,
                         write_through_notice{now.job.in, now.window, answer.held, credit, checksums});
            if (again)
              wait_for_others(self);
            else
              complete_window(self);
          },
          on_lost(self, "host tier"));
}

void copy_window(self_pointer self, const acquire_answer& acquired, bool again) {
  auto& state = self->state;
  copy_request request;
  request.direction = copy_direction::into_arena;
  request.outside = state.job.source;
  request.context = state.job.context;
  request.owners = {acquired.reserved};
  bool sums = !state.credits.empty(); // tiers below will want them
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::reserved) {
      add_pieces(state, request, acquired.places[i], i);
      if (sums)
        request.object_ends.push_back(request.pieces.size());
    }
  self->request(state.job.group->copiers->next(), caf::infinite, std::move(request))
      .then(
          [self, acquired, again](const copy_answer& copied) {
            if (copied.failure.code != errc::ok)
              finish(self,
                     copied.failure); // the reservation goes with `acquired`: nothing of it was ever visible
            else
              publish_window(self, acquired, copied.checksums, again);
          },
          on_lost(self, "copier"));
}

void acquire_window(self_pointer self) {
  auto& state = self->state;
  if (ended(self, "store"))
    return;
  acquire_request request;
  request.objects = state.window;
  bool told = state.job.context && state.job.context->inference != 0;
  request.note_access = state.attempts == 0 && !told; // else its inference is the use
  request.context = state.job.context;
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self](const acquire_answer& acquired) {
            if (acquired.failure.code != errc::ok) {
              finish(self, acquired.failure);
              return;
            }
            auto any = [&](acquired_state what) {
              return std::find(acquired.states.begin(), acquired.states.end(), what) != acquired.states.end();
            };
            // `absent` was there when the space was asked for and left before it came.
            bool again = any(acquired_state::pending) || any(acquired_state::absent);
            if (any(acquired_state::reserved))
              copy_window(self, acquired, again);
            else if (again)
              wait_for_others(self);
            else
              complete_window(self);
          },
          on_lost(self, "host tier"));
}

/// Leave to add the window to what waits for the tiers below, from `next` on, before it takes any memory. Always in their
/// order, so that of two stores none waits for what the other has.
void ask_credit(self_pointer self, size_t next) {
  auto& state = self->state;
  const auto& tiers = state.job.group->tiers();
  while (next < tiers.size() && !(tiers[next].write_new && tiers[next].writes()))
    ++next;
  if (next >= tiers.size()) {
    acquire_window(self);
    return;
  }
  write_credit_request request;
  for (uint64_t each : state.window->payload_bytes)
    request.bytes += physical_bytes_for(each);
  request.context = state.job.context;
  self->request(tiers[next].write_through, caf::infinite, std::move(request))
      .then(
          [self, next, tier = &tiers[next]](const write_credit_answer& answer) {
            if (answer.failure.code != errc::ok) {
              finish(self, answer.failure);
              return;
            }
            self->state.credits.emplace_back(tier, answer.credit);
            ask_credit(self, next + 1);
          },
          on_lost(self, "write-through"));
}

void start_window(self_pointer self) {
  auto& state = self->state;
  if (!next_window(state, state.job.group->window_bytes)) {
    finish(self, {});
    return;
  }
  state.copied.assign(state.window->size(), false);
  state.credits.clear();
  ask_credit(self, 1);
}

caf::behavior store_behavior(self_pointer self) { return transfer_behavior<store_job>(self, start_window); }

} // namespace

caf::actor spawn_store(caf::actor_system& system) { return system.spawn(store_behavior); }

} // namespace terrace::actors
