#include "actors/transfer/lookup_actor.hpp"

#include "coroutine/answer.hpp"
#include "coroutine/ask.hpp"
#include "runtime/home.hpp"
#include "runtime/short_turns.hpp"
#include "tier/prefix_search.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <functional>

namespace terrace::actors {

namespace {
struct next_slice {}; ///< to itself
} // namespace

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::next_slice)

namespace terrace::actors {

namespace {

struct lookup_state {
  const char* name = "lookup";
  task<> progress;
  std::function<void()> go_on; ///< called when the requested turn has come
};

using lookup_base = runtime::short_turns<runtime::homed<caf::event_based_actor>>;
using self_pointer = caf::stateful_actor<lookup_state, lookup_base>*;

/// `co_await next_turn(self);`: other actors run first.
class next_turn {
 public:
  explicit next_turn(self_pointer self) : self_(self) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    self_->state.go_on = [link = frame.promise().link, frame] {
      if (link->alive())
        link->resume(frame);
    };
    self_->send(self_, next_slice{});
  }
  void await_resume() const noexcept {}

 private:
  self_pointer self_;
};

/// The tiers to search, fastest first. Those that are empty or unreadable are not asked.
std::vector<const tier_parts*> tiers_of(const lookup_request& request) {
  std::vector<const tier_parts*> tiers;
  for (const tier_parts& tier : request.group->tiers()) {
    bool allowed = request.tiers == 0 || (request.tiers >> static_cast<unsigned>(tier.kind) & 1) != 0;
    if (allowed && tier.reads() && !tier.index->empty())
      tiers.push_back(&tier);
  }
  return tiers;
}

prefix_search search_of(const lookup_request& request, const std::vector<const tier_parts*>& tiers) {
  std::vector<tier_kind> kinds;
  for (const tier_parts* tier : tiers)
    kinds.push_back(tier->kind);
  return {request, request.objects, kinds};
}

/// What a tier that was not searched, or not as a whole, may have is not missing.
bool searched_everything(const group_parts& group, const std::vector<const tier_parts*>& searched) {
  using phase = group_parts::disk_phase;
  if (group.phase() == phase::starting || group.phase() == phase::locked)
    return false;
  const auto& tiers = group.tiers();
  return std::all_of(tiers.begin(), tiers.end(), [&](const tier_parts& tier) {
    bool was = std::any_of(searched.begin(), searched.end(),
                           [&](const tier_parts* one) { return one->kind == tier.kind; });
    return (was || tier.index->empty()) && tier.degraded().empty();
  });
}

/// False: the tier must be asked.
bool read_slice(prefix_search& search, size_t number, const tier_parts& tier) {
  auto counted = search.read(number, *tier.index);
  if (!counted)
    return false;
  tier.probe->hit(counted->hits);
  tier.probe->missed(counted->misses);
  return true;
}

/// Slices of long lookups do not delay short ones.
question<tier_actor, probe_request> probe_of(const prefix_search& search, const tier_parts& tier) {
  return {tier.tier, search.probe(),
          search.one_slice() ? caf::message_priority::high : caf::message_priority::normal};
}

/// One notice per tier; empty ones are not sent.
template <class Notice>
void tell(self_pointer self, const std::vector<const tier_parts*>& tiers, std::vector<Notice> notices) {
  for (size_t i = 0; i < tiers.size(); ++i)
    if (!notices[i].ids.empty())
      self->send(tiers[i]->tier, std::move(notices[i]));
}

bool ended(const lookup_request& request) { return request.context && !request.context->live(); }

void fail_as_ended(const lookup_request& request, answer<lookup_answer>& reply) {
  reply.fail({request.context->ended.load(), "the lookup ended before it was answered"});
}

/// Slice by slice: reads the tiers' indexes, or asks the tiers in parallel. Then leases what it found, in steps.
task<> look_up(self_pointer self, lookup_request request, answer<lookup_answer> reply) {
  auto tiers = tiers_of(request);
  auto search = search_of(request, tiers);
  bool more = search.next_slice();
  while (more) {
    std::vector<question<tier_actor, probe_request>> questions;
    std::vector<size_t> asked;
    for (size_t i = 0; i < tiers.size(); ++i)
      if (!read_slice(search, i, *tiers[i])) {
        questions.push_back(probe_of(search, *tiers[i]));
        asked.push_back(i);
      }
    auto answers = co_await ask_all<probe_answer>(self, std::move(questions), "tier");
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]) {
        reply.fail({errc::internal, "a tier has ended"});
        co_return;
      }
      search.add(asked[i], std::move(*answers[i]));
    }
    more = search.next_slice();
    if (more && ended(request)) {
      fail_as_ended(request, reply);
      co_return;
    }
    if (more && asked.empty()) {
      co_await next_turn(self); // turns are short: other actors run between slices
    }
  }
  auto found = search.take();
  const group_parts& group = *request.group;
  if (request.hold && searched_everything(group, tiers)) {
    auto gone = found.next_unusable();
    while (gone) {
      tell(self, tiers, std::move(*gone));
      gone = found.next_unusable();
      if (gone) {
        co_await next_turn(self);
      }
    }
  }
  lease_room room{group.leases, request.account, group.memory->size()};
  while (found.lease_some(room)) {
    co_await next_turn(self);
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
      co_await next_turn(self);
    }
  }
  reply.deliver({{}, found.plan(), found.take_holds(), found.shortened()});
}

void on_next_slice(lookup_state& state) {
  if (auto go_on = std::exchange(state.go_on, nullptr))
    go_on();
}

auto on_lookup(self_pointer self, const lookup_request& request) {
  auto reply = make_answer<lookup_answer>(self);
  auto promise = reply.promise();
  self->state.progress = look_up(self, request, std::move(reply));
  self->state.progress.start();
  return promise;
}

caf::behavior lookup_behavior(self_pointer self) {
  return {
      [self](const lookup_request& request) { return on_lookup(self, request); },
      [self](next_slice) { on_next_slice(self->state); },
  };
}

} // namespace

caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home) {
  return runtime::spawn_homed(system, home, lookup_behavior);
}

} // namespace terrace::actors
