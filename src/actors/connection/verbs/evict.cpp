// evict: removes the objects of a prompt from tiers.
#include "actors/connection/verbs.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_source.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

/// Objects that a tier is asked for at a time.
constexpr size_t objects_at_a_time = 1'024;

/// `chosen`: bit n: tier_kind n; 0: all. The fastest tier first, and once more at the end, as for a clear
/// (tier/objects/clear_course.hpp): so no concurrent transfer brings back what was removed.
std::vector<tier_actor> tiers_to_ask(const group_parts& group, uint32_t chosen) {
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
  request.take_terms(asked);
  connected_client& client = request.client;
  if (!request.may_govern("an eviction removes what all clients of the trust group have stored"))
    co_return;
  auto in = request.space(asked.space());
  if (!in)
    co_return;
  const wire::Prefix& sent = *asked.prefix();
  auto prefix = co_await request.chunks(*in, sent);
  auto chunks = std::make_shared<const std::vector<digest>>(std::move(prefix.chunks));
  object_source objects(in->what, chunks);
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
