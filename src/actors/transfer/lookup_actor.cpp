#include "actors/transfer/lookup_actor.hpp"

#include "actors/answer.hpp"
#include "index/chunk_layout.hpp"
#include "runtime/home.hpp"
#include "runtime/short_turns.hpp"
#include "storage/object_header.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <numeric>

namespace terrace::actors {

namespace {
struct next_slice {}; ///< to itself
} // namespace

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::next_slice)

namespace terrace::actors {

namespace {

/// Objects that a tier looks for between two looks at its other messages, some 10 us. Many lookups are one slice.
constexpr size_t slice_objects = 128;

/// What one tier has said so far.
struct tier_share {
  tier_actor tier;
  std::shared_ptr<const tier_index> index;
  std::shared_ptr<metrics::tier_probe> probe;
  tier_kind kind = tier_kind::none;
  object_bitmap present; ///< of the whole request
  object_bitmap slice;
  hold_ptr held;
  bool asked = false;
};

struct lookup_state {
  const char* name = "lookup";
  lookup_request request;
  answer<lookup_answer> reply;
  tier_share host;
  tier_share disk;
  size_t first = 0; ///< of the slice that is asked for
  size_t slice = 0; ///< objects in a slice: whole words of a bitmap, whole chunks
  size_t waiting_for = 0;
  bool lost_tier = false;
};

using lookup_base = runtime::short_turns<runtime::homed<caf::event_based_actor>>;
using self_pointer = caf::stateful_actor<lookup_state, lookup_base>*;

bool one_slice(const lookup_state& state) { return state.request.objects->size() <= state.slice; }

bool has_trailing_pools(const lookup_state& state) {
  const auto& pools = state.request.in->spec.pools;
  return std::any_of(pools.begin(), pools.end(),
                     [](const pool_spec& pool) { return pool.rule == hit_rule::trailing_chunks; });
}

/// Probes note a use only where what they see is all there is to know.
bool probes_note_access(const lookup_state& state) { return one_slice(state) && !has_trailing_pools(state); }

/// A state that no window of the found prefix needs is not used, and a lease does not hold it.
void let_go_of_unneeded(const space_spec& spec, uint32_t found_chunks, object_hold& held) {
  chunk_layout layout(spec);
  std::vector<bool> keeps;
  keeps.reserve(held.places().size());
  for (uint32_t chunk = 0; chunk < found_chunks; ++chunk)
    for (size_t pool = 0; pool < layout.pools(); ++pool)
      keeps.insert(keeps.end(), layout.ranks(pool), needs(spec.pools[pool], found_chunks, chunk));
  held.keep_only(keeps);
}

/// What probes did not note is noted here, in one batch, for a chain's use is told from its end.
hold_ptr take_found(self_pointer self, tier_share& share, uint32_t found_chunks, size_t objects) {
  if (!share.held)
    return nullptr;
  share.held->keep_first(objects);
  if (objects == 0)
    return nullptr;
  if (has_trailing_pools(self->state))
    let_go_of_unneeded(self->state.request.in->spec, found_chunks, *share.held);
  if (self->state.request.note_access && !probes_note_access(self->state)) {
    access_notice used;
    for (const object_place& place : share.held->places())
      if (place.present())
        used.ids.push_back(place.id);
    if (!used.ids.empty())
      self->send(share.tier, std::move(used));
  }
  return std::move(share.held);
}

/// A lease of a chain longer than half of host memory would leave no room to load what it has on disk alone. Behind that half
/// it holds on disk what is there too.
void leave_room(uint64_t host_bytes, object_hold& host, const object_hold& disk) {
  uint64_t bytes = 0;
  std::vector<bool> keeps;
  keeps.reserve(host.places().size());
  for (size_t i = 0; i < host.places().size(); ++i) {
    const object_place& place = host.places()[i];
    bytes += place.present() ? physical_bytes_for(place.payload_bytes) : 0;
    keeps.push_back(bytes <= host_bytes / 2 || !disk.places()[i].present());
  }
  if (bytes > host_bytes / 2)
    host.keep_only(keeps);
}

void finish(self_pointer self) {
  auto& state = self->state;
  lookup_answer answer;
  if (state.lost_tier)
    answer.failure = {errc::internal, "a tier has ended"};
  std::vector<tier_answer> answers;
  for (tier_share* share : {&state.host, &state.disk})
    if (share->asked)
      answers.push_back({share->kind, std::move(share->present)});
  answer.plan = make_prefix_plan(state.request.in->spec, state.request.plan, answers);
  size_t kept = answer.plan.found_chunks * chunk_layout(state.request.in->spec).objects_per_chunk();
  answer.host = take_found(self, state.host, answer.plan.found_chunks, kept);
  answer.disk = take_found(self, state.disk, answer.plan.found_chunks, kept);
  if (answer.host && answer.disk)
    leave_room(state.request.group->memory->size(), *answer.host, *answer.disk);
  state.host = {};
  state.disk = {};
  state.lost_tier = false;
  state.request = {};
  std::exchange(state.reply, {}).deliver(std::move(answer));
}

/// Whether what lies behind this slice can still belong to a prefix. In spaces with trailing pools it may, whatever is
/// missing here.
bool goes_on(const lookup_state& state) {
  if (has_trailing_pools(state))
    return true;
  object_bitmap either = state.host.asked ? state.host.slice : state.disk.slice;
  if (state.host.asked && state.disk.asked)
    either.merge(0, state.disk.slice);
  return either.count() == either.size();
}

void look_at_slice(self_pointer self);

/// To the next slice; false when that was the last one.
bool advance(lookup_state& state) {
  state.first += state.slice;
  return state.first < state.request.objects->size() && !state.lost_tier && goes_on(state);
}

void one_less(self_pointer self) {
  auto& state = self->state;
  if (--state.waiting_for != 0)
    return;
  if (advance(state))
    look_at_slice(self);
  else
    finish(self);
}

void add_present(const lookup_state& state, tier_share& share, object_bitmap present) {
  share.present.merge(state.first, present);
  share.slice = std::move(present);
}

/// Looks into the tier's index on this thread: so a lookup does not wait for a tier that works for others, perhaps on a
/// worker that the kernel has put aside. False when the tier must be asked: what is found must be held, or the tier is
/// changing its index.
bool read_slice(const lookup_state& state, tier_share& share) {
  if (state.request.hold)
    return false;
  auto present = share.index->try_probe(*state.request.objects, {state.first, state.slice});
  if (!present)
    return false;
  size_t hits = present->count();
  share.probe->hit(hits);
  share.probe->missed(present->size() - hits);
  add_present(state, share, std::move(*present));
  return true;
}

void add_held(const lookup_state& state, tier_share& share, const hold_ptr& found) {
  if (one_slice(state)) {
    share.held = found;
    return;
  }
  if (!share.held)
    share.held =
        std::make_shared<object_hold>(caf::actor_cast<caf::actor>(share.tier), std::vector<object_place>{});
  share.held->append(state.first, std::move(*found));
}

void ask(self_pointer self, tier_share& share) {
  auto& state = self->state;
  const auto& request = state.request;
  ++state.waiting_for;
  probe_request probe{request.objects,
                      request.hold,
                      request.note_access && probes_note_access(state),
                      {state.first, state.slice}};
  auto asked = one_slice(state) // a long lookup's slices do not stand in a short one's way
                   ? self->request<caf::message_priority::high>(share.tier, caf::infinite, std::move(probe))
                   : self->request(share.tier, caf::infinite, std::move(probe));
  std::move(asked).then(
      [self, &share](const probe_answer& found) {
        add_present(self->state, share, found.present);
        if (found.held)
          add_held(self->state, share, found.held);
        one_less(self);
      },
      [self](const caf::error&) {
        self->state.lost_tier = true;
        one_less(self);
      });
}

void look_at_slice(self_pointer self) {
  auto& state = self->state;
  for (tier_share* share : {&state.host, &state.disk})
    if (share->asked && !read_slice(state, *share))
      ask(self, *share);
  if (state.waiting_for != 0)
    return; // the last answer goes on
  if (advance(state))
    self->send(self, next_slice{}); // its turns are short: others have theirs between slices
  else
    finish(self);
}

/// An empty tier is not asked.
void add_tier(lookup_state& state, tier_share& share, const tier_actor& tier, tier_kind kind,
              const std::shared_ptr<const tier_index>& index,
              const std::shared_ptr<metrics::tier_probe>& probe) {
  bool allowed = state.request.tiers == 0 || (state.request.tiers >> static_cast<unsigned>(kind) & 1) != 0;
  if (!allowed || index->empty())
    return;
  share = {tier, index, probe, kind, object_bitmap(state.request.objects->size()), {}, nullptr, true};
}

caf::behavior lookup_behavior(self_pointer self) {
  return {
      [self](const lookup_request& request) {
        auto& state = self->state;
        state.request = request;
        state.reply = make_answer<lookup_answer>(self);
        auto promise = state.reply.promise();
        const group_parts& group = *request.group;
        add_tier(state, state.host, group.host, tier_kind::host, group.host_index, group.host_probe);
        if (const auto* disk = group.disk(); disk != nullptr && disk->service->reads())
          add_tier(state, state.disk, disk->tier, tier_kind::disk, disk->index, disk->probe);
        size_t whole = std::lcm(size_t{64}, size_t{chunk_layout(request.in->spec).objects_per_chunk()});
        state.slice = std::max(slice_objects / whole, size_t{1}) * whole;
        state.first = 0;
        state.waiting_for = 0;
        if (state.host.asked || state.disk.asked)
          look_at_slice(self);
        else
          finish(self);
        return promise;
      },
      [self](next_slice) { look_at_slice(self); },
  };
}

} // namespace

caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home) {
  return runtime::spawn_homed(system, home, lookup_behavior);
}

} // namespace terrace::actors
