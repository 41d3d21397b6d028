#include "actors/lookup/lookup_actor.hpp"

#include "runtime/answer.hpp"
#include "runtime/ask.hpp"
#include "runtime/home.hpp"
#include "runtime/next_turn.hpp"
#include "runtime/turn_times.hpp"
#include "tier/search/prefix_search.hpp"
#include "tier/search/recompute_choice.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>

#include <array>
#include <cassert>
#include <chrono>
#include <utility>

namespace terrace::actors {

namespace {
struct next_slice {}; ///< a lookup sends this to itself
} // namespace

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::next_slice)

namespace terrace::actors {

namespace {

struct lookup_state {
  const char* name = "lookup";
  task<> progress;
  turn_wait wait; ///< waits between slices
};

using lookup_base = runtime::short_turns<runtime::homed<caf::event_based_actor, runtime::woken::next>>;
using lookup_pointer = caf::stateful_actor<lookup_state, lookup_base>*;

using tiers_searched = searched_tiers<tier_handle>;

/// Returns false if the tier must be asked.
bool read_slice(prefix_search& search, size_t number, const tier_handle& tier) {
  auto counted = search.read(number, *tier.index);
  if (!counted)
    return false;
  tier.probe->hit(counted->hits);
  tier.probe->missed(counted->misses);
  return true;
}

/// The tiers that must be asked for a slice, and the questions.
struct slice_questions {
  std::vector<question<tier_actor, probe_request>> all;
  std::vector<size_t> tiers; ///< parallel
};

/// Reads the indexes of host memory and faster tiers, or, `below`, of the others. Returns what is left to ask.
slice_questions search_slice(prefix_search& search, const tiers_searched& tiers, bool below, bool copies) {
  slice_questions left;
  // Slices keep long lookups from delaying short ones.
  const auto priority = search.one_slice() ? caf::message_priority::high : caf::message_priority::normal;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (slower_than_memory(tiers[i].kind) != below || read_slice(search, i, tiers[i]))
      continue;
    if (auto request = search.probe(i, copies)) {
      left.all.push_back({tiers[i].tier, std::move(*request), priority});
      left.tiers.push_back(i);
    }
  }
  return left;
}

/// True if the lease may hold all that was found in host memory. Otherwise tiers below hold copies.
bool fits_in_memory(const prefix_search& search, const lookup_request& request) {
  const lease_ledger& leases = *request.group->leases;
  return request.account->could_lease(search.bytes_in_memory(),
                                      leases.bytes_max_beside_loads(request.group->memory->size()));
}

/// Sends one notice per tier; empty ones are not sent.
template <class Notice>
void tell(lookup_pointer self, const tiers_searched& tiers, std::vector<Notice> notices) {
  assert(notices.size() <= tiers.size());
  for (size_t i = 0; i < tiers.size(); ++i)
    if (!notices[i].ids.empty())
      self->send(tiers[i].tier, std::move(notices[i]));
}

bool ended(const lookup_request& request) { return request.context && !request.context->live(); }

void fail_as_ended(const lookup_request& request, answer<lookup_answer>& reply) {
  reply.fail({request.context->ended.load(), "the lookup ended before it was answered"});
}

/// Returns what is known of the tiers now.
recompute_terms terms_of(const lookup_request& request, const tiers_searched& tiers) {
  recompute_terms terms;
  terms.tokens_per_s = request.prefill_tokens_per_s;
  auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < tiers.size(); ++i)
    if (tiers[i].meter)
      terms.tiers[static_cast<size_t>(tiers[i].kind)] = tiers[i].meter->state(now);
  return terms;
}

/// Reads the tiers' indexes slice by slice, or asks the tiers: host memory and faster ones in parallel, then the others.
/// Then leases what it found, in steps.
task<> look_up(lookup_pointer self, lookup_request request, answer<lookup_answer> reply) {
  const trust_group& group = *request.group;
  if (request.hold && !request.account)
    request.account = group.leases->open();
  tiers_searched tiers(group.tiers(), request.tiers);
  prefix_subject subject = request;
  prefix_search search(std::move(subject), std::move(request.objects), tiers.kinds());
  bool more = search.next_slice();
  while (more) {
    bool asked = false;
    for (bool below : {false, true}) {
      const bool copies = below && request.hold && (request.copies || !fits_in_memory(search, request));
      auto questions = search_slice(search, tiers, below, copies);
      if (questions.all.empty())
        continue;
      asked = true;
      auto answers = co_await ask_all<probe_answer>(self, std::move(questions.all), "tier");
      for (size_t i = 0; i < answers.size(); ++i) {
        if (!answers[i]) {
          reply.fail({errc::internal, "a tier has ended"});
          co_return;
        }
        search.add(questions.tiers[i], std::move(*answers[i]));
      }
    }
    more = search.next_slice();
    if (more && ended(request)) {
      fail_as_ended(request, reply);
      co_return;
    }
    if (more && !asked) {
      co_await next_turn<next_slice>(self,
                                     self->state.wait); // turns are short: other actors run between slices
    }
  }
  auto found = search.take();
  while (found.plan_some()) {
    co_await next_turn<next_slice>(self, self->state.wait);
    if (ended(request)) {
      fail_as_ended(request, reply);
      co_return;
    }
  }
  // Chunks in a tier that was not searched, or not completely, do not count as missing.
  if (request.hold && !group.will_join() && tiers.everything(group.tiers())) {
    auto gone = found.next_unusable();
    while (gone) {
      tell(self, tiers, std::move(*gone));
      gone = found.next_unusable();
      if (gone) {
        co_await next_turn<next_slice>(self, self->state.wait);
      }
    }
  }
  if (request.prefill_tokens_per_s != 0) {
    auto terms = terms_of(request, tiers);
    while (found.leave_some(terms)) {
      co_await next_turn<next_slice>(self, self->state.wait);
      if (ended(request)) {
        fail_as_ended(request, reply);
        co_return;
      }
    }
  }
  lease_room room{group.leases, request.account, group.memory->size(), {}};
  for (const tier_handle& tier : group.tiers())
    room.below_bytes[static_cast<size_t>(tier.kind)] = tier.bytes;
  while (found.lease_some(room)) {
    co_await next_turn<next_slice>(self, self->state.wait);
    if (ended(request)) {
      fail_as_ended(request, reply);
      co_return;
    }
  }
  auto used = found.next_accesses();
  while (used) {
    tell(self, tiers, std::move(*used));
    used = found.next_accesses();
    if (used) {
      co_await next_turn<next_slice>(self, self->state.wait);
    }
  }
  auto held = found.take_holds();
  auto plan = found.take_plan();
  if (!request.object_tiers)
    plan.object_tiers = {}; // otherwise copied with the plan
  reply.deliver({{},
                 std::move(plan),
                 std::move(held),
                 found.shortened(),
                 found.held_bytes(),
                 found.recompute_chunks()});
}

auto on_lookup(lookup_pointer self, lookup_request&& request) {
  assert(!self->state.progress.in_progress()); // one lookup at a time
  auto reply = make_answer<lookup_answer>(self);
  auto promise = reply.promise();
  self->state.progress = look_up(self, std::move(request), std::move(reply));
  self->state.progress.start();
  return promise;
}

caf::behavior lookup_behavior(lookup_pointer self) {
  return {
      [self](lookup_request& request) { return on_lookup(self, std::move(request)); },
      [self](next_slice) { self->state.wait.over(); },
  };
}

} // namespace

std::optional<lookup_answer> look_up_at_once(const lookup_request& request) {
  if (request.hold || request.prefill_tokens_per_s != 0 ||
      request.objects.size() > prefix_search::slice_objects)
    return std::nullopt;
  tiers_searched tiers(request.group->tiers(), request.tiers);
  prefix_search search(request, request.objects, tiers.kinds());
  std::array<prefix_search::counted, tiers.kinds_max> counted;
  if (search.next_slice())
    for (size_t i = 0; i < tiers.size(); ++i) {
      auto read = search.read(i, *tiers[i].index);
      if (!read)
        return std::nullopt;
      counted[i] = *read;
    }
  for (size_t i = 0; i < tiers.size(); ++i) {
    tiers[i].probe->hit(counted[i].hits);
    tiers[i].probe->missed(counted[i].misses);
  }
  auto found = search.take();
  while (found.plan_some())
    ;
  lookup_answer answer;
  answer.plan = found.take_plan();
  if (!request.object_tiers)
    answer.plan.object_tiers = {};
  return answer;
}

caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home) {
  return runtime::spawn_homed(system, home, lookup_behavior);
}

} // namespace terrace::actors
