// clear: removes the objects of a space, or all of the trust group, permanently.
#include "actors/connection/verbs.hpp"
#include "actors/disk/disk_set.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/objects/tier_clear.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

/// Writes the clear to the state directory, for what the volume or a path of it cannot record now.
task<error> record(client_request& request, pending_clear clear) {
  connected_client& client = request.client;
  auto keeper = spawn_clear_keeper(request.actor.system(), client.group_handle());
  remember_clear_request question{std::move(clear)};
  auto recorded = co_await request.try_ask<remember_clear_answer>(
      keeper, std::move(question), "the clear could not be recorded for the disk tier");
  co_return recorded ? recorded->failure : recorded.error();
}

} // namespace

/// 1. If the volume cannot be reached, the clear is recorded in the state directory: the volume applies it before it
///    serves again.
/// 2. The tiers are asked, in the order of tier/objects/tier_clear.hpp.
/// 3. If an open volume could not make the clear durable on all of its paths, it is recorded for the other paths.
task<> clear(client_request& request, const wire::Clear& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a clear removes what all clients of the trust group have stored");
  std::optional<space_id> space;
  std::optional<space_fingerprint> fingerprint;
  if (asked.space() != 0) {
    auto opened = co_await request.space_of(asked);
    space = opened->space->id;
    fingerprint = opened->space->fingerprint.bytes;
  }
  const trust_group& group = client.group();
  forget_prompts_request prompts{space.value_or(space_id{})};
  co_await request.ask<forget_prompts_answer>(group.group, std::move(prompts), group_ended);
  clear_order order;
  if (group.disk() == nullptr) {
    pending_clear pending{fingerprint};
    auto failure = co_await record(request, std::move(pending));
    if (failure.code == errc::busy) {
      co_await request.valid(failure);
    }
    order.recorded(failure);
  }
  while (auto next = order.next(group.tiers().size())) {
    tier_actor tier = group.tiers()[*next].tier;
    clear_request question{
        .space = space, .fingerprint = fingerprint, .in_progress = order.in_progress(*next)};
    auto cleared =
        co_await request.ask<clear_answer>(tier, std::move(question), "a tier ended while it was cleared");
    order.add(cleared);
  }
  // Paths of the volume that are left out, or could not write the clear down, hear of it when they are opened.
  if (auto missed = order.unrecorded(fingerprint)) {
    pending_clear pending = *missed;
    auto failure = co_await record(request, std::move(pending));
    order.recorded(failure);
  }
  const clear_answer& sum = order.sum();
  co_await request.valid(sum.failure);
  if (group.shadow)
    request.actor.send(group.shadow, shadow_clear{space});
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateClearAnswer(body, sum.objects, sum.bytes);
  });
}

// evict: removes the objects of a prompt from tiers.

namespace {

/// Objects that a tier is asked for at a time.
constexpr size_t objects_at_a_time = 1'024;

/// `chosen`: bit n: tier_kind n; 0: all. The fastest tier first, and once more at the end, as for a clear
/// (tier/objects/tier_clear.hpp): so no concurrent transfer brings back what was removed.
std::vector<tier_actor> tiers_to_ask(const trust_group& group, uint32_t chosen) {
  std::vector<tier_actor> asked;
  for (const tier_handle& tier : group.tiers())
    if (chosen == 0 || (chosen >> static_cast<unsigned>(tier.kind) & 1) != 0)
      asked.push_back(tier.tier);
  if (asked.size() > 1)
    asked.push_back(asked.front());
  return asked;
}

struct removed_objects {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

discard_notice unwanted(const object_hold& held, removed_objects& sum) {
  discard_notice notice{{}, discard_reason::unwanted};
  for (const object_place& place : held.places())
    if (place.present()) {
      notice.ids.push_back(place.id);
      ++sum.count;
      sum.bytes += place.physical_bytes;
    }
  return notice;
}

} // namespace

/// A tier at a time, and some objects at a time: the tier holds those that it has, is told that they are unwanted, and frees
/// them when the hold ends.
task<> evict(client_request& request, const wire::Evict& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("an eviction removes what all clients of the trust group have stored");
  auto space = co_await request.space_of(asked);
  auto prefix = co_await request.chunks_of(*space, asked);
  auto chunks = std::make_shared<const std::vector<digest>>(std::move(prefix.chunks));
  object_source objects(space->space, chunks);
  size_t charged = objects.size() / 64; // some objects at a time
  co_await request.room(charged);
  removed_objects removed;
  auto tiers = tiers_to_ask(client.group(), asked.tiers());
  for (const tier_actor& tier : tiers)
    for (size_t next = 0; next < objects.size(); next += objects_at_a_time) {
      if (!request.context->live()) {
        request.refuse({request.context->ended.load(),
                        "the request ended; " + std::to_string(removed.count) + " objects were removed"});
        co_return;
      }
      auto part = objects.cut(next, objects_at_a_time);
      probe_request probe;
      probe.objects = part.objects;
      probe.hold = true;
      probe.range = part.range;
      auto found = co_await request.ask<probe_answer>(tier, std::move(probe), "a tier has ended");
      if (!found.held)
        continue;
      request.actor.send(tier, unwanted(*found.held, removed));
      found.held = {};
      // The tier has read the notice when it has answered this: no lookup finds the objects any more.
      confirm_request confirm;
      co_await request.ask<confirm_answer>(tier, std::move(confirm), "a tier has ended");
    }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateEvictAnswer(body, removed.count, removed.bytes);
  });
}

} // namespace terrace::actors::verbs
