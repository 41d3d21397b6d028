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
constexpr size_t objects_at_a_time = remove_values_request::objects_max;

struct evicted_tier {
  tier_actor tier;
  remote_store_actor store; ///< null: the tier's index has all that there is
};

/// `chosen`: bit n: tier_kind n; 0: all.
std::vector<evicted_tier> tiers_to_ask(const trust_group& group, uint32_t chosen) {
  std::vector<evicted_tier> asked;
  for (const tier_handle& tier : group.tiers())
    if (chosen == 0 || (chosen >> static_cast<unsigned>(tier.kind) & 1) != 0)
      asked.push_back({tier.tier, tier.store});
  return asked;
}

} // namespace

/// Some objects at a time, from one tier after the other, in the order of a clear. A store that others share is asked for all of
/// them behind its tier, because the index there is a belief, and has removed them before host memory is asked again.
task<> evict(client_request& request, const wire::Evict& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("an eviction removes what all clients of the trust group have stored");
  auto space = co_await request.space_of(asked);
  auto prefix = co_await request.chunks_of(*space, asked);
  auto chunks = std::make_shared<const std::vector<digest>>(std::move(prefix.chunks));
  object_source objects(space->space, chunks);
  size_t charged = objects.size() / 64; // some objects at a time
  co_await request.room(charged);
  remove_answer sum;
  error left; // why a store may still have some
  auto tiers = tiers_to_ask(client.group(), asked.tiers());
  for (size_t next = 0; next < objects.size(); next += objects_at_a_time) {
    auto part = objects.cut(next, objects_at_a_time);
    clear_order order;
    while (auto position = order.next(tiers.size())) {
      if (!request.context->live()) {
        request.refuse({request.context->ended.load(),
                        "the request ended; " + std::to_string(sum.objects) + " objects were removed"});
        co_return;
      }
      const auto& [tier, store] = tiers[*position];
      remove_request question{.objects = part.objects, .in_progress = order.in_progress(*position)};
      auto removed = co_await request.ask<remove_answer>(tier, std::move(question), "a tier has ended");
      sum.objects += removed.objects;
      sum.bytes += removed.bytes;
      if (!store)
        continue;
      remove_values_request values{space->space, objects.whole(next, objects_at_a_time)};
      auto told = co_await request.ask<remove_values_answer>(store, std::move(values),
                                                             "the actor of the remote store has ended");
      if (told.failure.code != errc::ok)
        left = told.failure;
    }
  }
  co_await request.valid(left);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateEvictAnswer(body, sum.objects, sum.bytes);
  });
}

} // namespace terrace::actors::verbs
