#include "actors/transfer/lookup_actor.hpp"

#include "coroutine/answer.hpp"
#include "coroutine/ask.hpp"
#include "index/chunk_layout.hpp"
#include "index/unusable_objects.hpp"
#include "runtime/home.hpp"
#include "runtime/short_turns.hpp"
#include "tier/lease_cut.hpp"

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

/// Objects that a tier probes between checks for other messages, about 10 us: whole words of a bitmap. Many lookups
/// are one slice.
constexpr size_t slice_objects = 128;
static_assert(slice_objects % 64 == 0);

/// The results of one tier so far.
struct tier_share {
  const tier_parts* tier = nullptr;
  object_bitmap present; ///< of the whole request
  object_bitmap slice;
  hold_ptr held;
};

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

/// A lookup in progress.
struct search {
  lookup_request request;
  std::vector<tier_share> tiers; ///< the tiers to search, fastest first
  size_t first = 0;              ///< first object of the current slice
  object_source::part now;       ///< the slice
  size_t probed = 0;             ///< objects in the slices so far

  explicit search(lookup_request what);
};

bool one_slice(const search& state) { return state.request.objects.size() <= slice_objects; }

bool has_trailing_pools(const search& state) {
  const auto& pools = state.request.in->spec.pools;
  return std::any_of(pools.begin(), pools.end(),
                     [](const pool_spec& pool) { return pool.rule == hit_rule::trailing_chunks; });
}

/// Probes record accesses only if they see the whole request.
bool probes_note_access(const search& state) { return one_slice(state) && !has_trailing_pools(state); }

/// A state that no window of the found prefix needs is not accessed, and a lease does not hold it.
void let_go_of_unneeded(const space_spec& spec, uint32_t found_chunks, object_hold& held) {
  chunk_layout layout(spec);
  std::vector<bool> keeps;
  keeps.reserve(held.places().size());
  for (uint32_t chunk = 0; chunk < found_chunks; ++chunk)
    for (size_t pool = 0; pool < layout.pools(); ++pool)
      keeps.insert(keeps.end(), layout.ranks(pool), needs(spec.pools[pool], found_chunks, chunk));
  held.keep_only(keeps);
}

/// Records, in one batch, accesses that probes did not, because a chain is recorded from its end.
void note_access(self_pointer self, const search& state, const tier_share& share) {
  if (!state.request.note_access || probes_note_access(state))
    return;
  access_notice used;
  for (const object_place& place : share.held->places())
    if (place.present())
      used.ids.push_back(place.id);
  if (!used.ids.empty())
    self->send(share.tier->tier, std::move(used));
}

/// What leases may hold of host memory, all together. What could be held below leaves room for loads, which read
/// what leases hold there.
uint64_t leased_bytes_max(const search& state) {
  const auto& group = *state.request.group;
  return state.tiers.size() > 1 ? group.leases->bytes_max_beside_loads(group.memory->size())
                                : group.leases->bytes_max(group.memory->size());
}

leased_prefix prefix_of(const search& state, uint64_t room) {
  leased_prefix prefix{state.request.in->spec, state.tiers.front().held->places(), {}, {}, room};
  for (auto share = state.tiers.begin() + 1; share != state.tiers.end(); ++share)
    if (share->held)
      prefix.below.emplace_back(share->held->places());
  prefix.leased = state.request.group->leases->leased(prefix.host);
  return prefix;
}

object_bitmap first_of(const object_bitmap& all, size_t objects) {
  object_bitmap part(objects);
  for (size_t i = 0; i < objects; ++i)
    if (all.test(i))
      part.set(i);
  return part;
}

bool holds_in_host(const search& state) {
  return !state.tiers.empty() && state.tiers.front().tier->kind == tier_kind::host &&
         state.tiers.front().held;
}

/// Whether all that was found is held in host memory, and all of it is needed.
bool all_in_host(const search& state) {
  const auto& places = state.tiers.front().held->places();
  return !has_trailing_pools(state) &&
         std::all_of(places.begin(), places.end(), [](const object_place& place) { return place.present(); });
}

/// What a tier that was not searched, or not as a whole, may have is not missing.
bool searched_everything(const search& state) {
  using phase = group_parts::disk_phase;
  const group_parts& group = *state.request.group;
  if (group.phase() == phase::starting || group.phase() == phase::locked)
    return false;
  const auto& tiers = group.tiers();
  return std::all_of(tiers.begin(), tiers.end(), [&](const tier_parts& tier) {
    bool searched = std::any_of(state.tiers.begin(), state.tiers.end(),
                                [&](const tier_share& share) { return share.tier->kind == tier.kind; });
    return (searched || tier.index->empty()) && tier.degraded().empty();
  });
}

/// Chunks behind the found prefix of which a rank is missing that has left are removed from all tiers.
void drop_unusable(self_pointer self, const search& state, const std::vector<tier_answer>& answers,
                   uint32_t found_chunks) {
  const opened_space& space = *state.request.in;
  if (!state.request.hold || space.spec.world_size == 1)
    return;
  // The last slice may have ended inside a chunk, whose other objects are not known.
  size_t known = state.probed - state.probed % chunk_layout(space.spec).objects_per_chunk();
  object_bitmap anywhere(known);
  for (const tier_answer& each : answers)
    anywhere.merge(0, first_of(each.present, known));
  auto unusable = unusable_objects(space.spec, *space.ranks, anywhere, found_chunks);
  if (unusable.empty() || !searched_everything(state))
    return;
  for (const tier_share& share : state.tiers) {
    discard_notice gone{{}, discard_reason::unusable};
    for (size_t object : unusable)
      if (share.held && object < share.held->places().size() && share.held->places()[object].present())
        gone.ids.push_back(share.held->places()[object].id);
    if (!gone.ids.empty())
      self->send(share.tier->tier, std::move(gone));
  }
}

/// The objects found, as one prefix of the fastest tiers.
lookup_answer merge(self_pointer self, search& state) {
  const space_spec& spec = state.request.in->spec;
  size_t per_chunk = chunk_layout(spec).objects_per_chunk();
  std::vector<tier_answer> answers;
  for (tier_share& share : state.tiers)
    answers.push_back({share.tier->kind, std::move(share.present)});
  // Nothing is present behind the last slice.
  auto request = state.request.plan;
  size_t chunks = (state.probed + per_chunk - 1) / per_chunk;
  if (chunks < request.chunks) {
    request.chunks = static_cast<uint32_t>(chunks);
    for (tier_answer& each : answers)
      each.present = first_of(each.present, chunks * per_chunk);
  }
  lookup_answer answer;
  answer.plan = make_prefix_plan(spec, request, answers);
  answer.plan.requested_chunks = state.request.plan.chunks;
  auto keep_found = [&] {
    for (tier_share& share : state.tiers)
      if (share.held)
        share.held->keep_first(answer.plan.found_chunks * per_chunk);
  };
  drop_unusable(self, state, answers, answer.plan.found_chunks);
  keep_found();
  auto leave_out_unneeded = [&] {
    for (tier_share& share : state.tiers)
      if (share.held && has_trailing_pools(state))
        let_go_of_unneeded(spec, answer.plan.found_chunks, *share.held);
  };
  if (!holds_in_host(state) || answer.plan.found_chunks == 0) {
    leave_out_unneeded();
  } else {
    account_ptr account = state.request.account ? state.request.account : state.request.group->leases->open();
    hold_ptr& host = state.tiers.front().held;
    auto claimed = account->claim_for(host->places(), leased_bytes_max(state));
    if (!claimed.complete() || !all_in_host(state)) {
      size_t may_have = chunks_that_fit(prefix_of(state, claimed.bytes()));
      if (may_have < answer.plan.found_chunks) {
        auto shorter = state.request.plan;
        shorter.chunks = static_cast<uint32_t>(may_have);
        for (tier_answer& each : answers)
          each.present = first_of(each.present, may_have * per_chunk);
        answer.plan = make_prefix_plan(spec, shorter, answers);
        answer.plan.requested_chunks = state.request.plan.chunks;
        keep_found();
        answer.shortened = true;
      }
      leave_out_unneeded();
      auto keeps = kept_in_host(prefix_of(state, claimed.bytes()));
      host->keep_only(keeps);
    }
    host = account->charge(std::move(host));
  }
  for (tier_share& share : state.tiers) {
    if (!share.held || answer.plan.found_chunks == 0)
      continue;
    note_access(self, state, share);
    answer.held.push_back({share.tier->kind, std::move(share.held)});
  }
  return answer;
}

/// True if objects after this slice can still belong to a prefix. In spaces with trailing pools they may,
/// whatever is missing here.
bool goes_on(const search& state) {
  if (has_trailing_pools(state))
    return true;
  object_bitmap any = state.tiers.front().slice;
  for (size_t i = 1; i < state.tiers.size(); ++i)
    any.merge(0, state.tiers[i].slice);
  return any.count() == any.size();
}

void cut_slice(search& state) {
  state.now = state.request.objects.cut(state.first, slice_objects);
  state.probed = state.first + state.now.range.count;
}

/// Advances to the next slice; false after the last one.
bool advance(search& state) {
  state.first += slice_objects;
  if (state.first >= state.request.objects.size() || !goes_on(state))
    return false;
  cut_slice(state);
  return true;
}

void add_present(const search& state, tier_share& share, object_bitmap present) {
  share.present.merge(state.first, present);
  share.slice = std::move(present);
}

/// Reads the tier's index on this thread, so that a lookup does not wait for a tier that is busy, perhaps on
/// a preempted worker. False if the tier must be asked: the objects must be held, or the tier is modifying
/// its index.
bool read_slice(const search& state, tier_share& share) {
  if (state.request.hold)
    return false;
  auto present = share.tier->index->try_probe(*state.now.objects, state.now.range);
  if (!present)
    return false;
  size_t hits = present->count();
  share.tier->probe->hit(hits);
  share.tier->probe->missed(present->size() - hits);
  add_present(state, share, std::move(*present));
  return true;
}

void add_held(const search& state, tier_share& share, const hold_ptr& found) {
  if (one_slice(state)) {
    share.held = found;
    return;
  }
  if (!share.held)
    share.held = std::make_shared<object_hold>();
  share.held->append(state.first, std::move(*found));
}

question<tier_actor, probe_request> probe_of(const search& state, const tier_share& share) {
  const auto& request = state.request;
  probe_request probe{state.now.objects, request.hold, request.note_access && probes_note_access(state),
                      state.now.range};
  // Slices of a long lookup do not delay short ones.
  return {share.tier->tier, std::move(probe),
          one_slice(state) ? caf::message_priority::high : caf::message_priority::normal};
}

void add_answer(const search& state, tier_share& share, probe_answer found) {
  add_present(state, share, std::move(found.present));
  if (found.held)
    add_held(state, share, found.held);
}

/// Tiers that are empty or unreadable are not asked.
bool is_asked(const lookup_request& request, const tier_parts& tier) {
  bool allowed = request.tiers == 0 || (request.tiers >> static_cast<unsigned>(tier.kind) & 1) != 0;
  return allowed && tier.reads() && !tier.index->empty();
}

search::search(lookup_request what) : request(std::move(what)) {
  for (const tier_parts& tier : request.group->tiers())
    if (is_asked(request, tier))
      tiers.push_back({&tier, object_bitmap(request.objects.size()), {}, nullptr});
  if (!tiers.empty())
    cut_slice(*this);
}

/// Slice by slice: reads the tiers' indexes, or asks the tiers in parallel.
task<> look_up(self_pointer self, lookup_request request, answer<lookup_answer> reply) {
  search state(std::move(request));
  bool more = !state.tiers.empty();
  while (more) {
    std::vector<question<tier_actor, probe_request>> questions;
    std::vector<tier_share*> asked;
    for (tier_share& share : state.tiers)
      if (!read_slice(state, share)) {
        questions.push_back(probe_of(state, share));
        asked.push_back(&share);
      }
    auto answers = co_await ask_all<probe_answer>(self, std::move(questions), "tier");
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]) {
        reply.fail({errc::internal, "a tier has ended"});
        co_return;
      }
      add_answer(state, *asked[i], std::move(*answers[i]));
    }
    more = advance(state);
    if (more && state.request.context && !state.request.context->live()) {
      reply.fail({state.request.context->ended.load(), "the lookup ended before it was answered"});
      co_return;
    }
    if (more && asked.empty()) {
      co_await next_turn(self); // turns are short: other actors run between slices
    }
  }
  auto found = merge(self, state);
  reply.deliver(std::move(found));
}

caf::behavior lookup_behavior(self_pointer self) {
  return {
      [self](const lookup_request& request) {
        auto reply = make_answer<lookup_answer>(self);
        auto promise = reply.promise();
        self->state.progress = look_up(self, request, std::move(reply));
        self->state.progress.start();
        return promise;
      },
      [self](next_slice) {
        if (auto go_on = std::exchange(self->state.go_on, nullptr))
          go_on();
      },
  };
}

} // namespace

caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home) {
  return runtime::spawn_homed(system, home, lookup_behavior);
}

} // namespace terrace::actors
