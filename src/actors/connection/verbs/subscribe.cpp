// subscribe: what the tiers have, and then what comes and goes.
#include "actors/connection/verbs.hpp"
#include "base/tier_properties.hpp"
#include "tier/messages.hpp"
#include "tier/objects/event_log.hpp"

#include <cstring>
#include <utility>

namespace terrace::actors::verbs {

namespace {

constexpr auto in_no_snapshot = static_cast<uint8_t>(nowhere);

wire::Event event_to_wire(const tier_event& event) {
  uint64_t words[4];
  std::memcpy(words, event.key.chunk.bytes.data(), sizeof words);
  return {event.sequence,
          words[0],
          words[1],
          words[2],
          words[3],
          static_cast<uint32_t>(event.key.space),
          event.key.pool,
          event.key.rank,
          static_cast<uint16_t>(event.kind),
          static_cast<uint16_t>(event.tier),
          event.chunk_objects};
}

struct event_position {
  uint64_t sequence = 0;
  uint8_t tier = in_no_snapshot;
  uint32_t slot = 0;
};

void tell_events(client_request& request, const std::vector<tier_event>& events, bool snapshot,
                 const event_position& next) {
  connected_client& client = request.client;
  uint64_t last = client.group().events->read(next.sequence, 0).last;
  std::vector<wire::Event> all;
  all.reserve(events.size());
  for (const tier_event& event : events)
    all.push_back(event_to_wire(event));
  client.environment().client_probe->told_events(all.size());
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSubscribeAnswer(body, body.CreateVectorOfStructs(all), snapshot, next.sequence,
                                       next.tier, next.slot, last);
  });
}

/// The events behind `sequence`, now or when there are some.
task<> follow_events(client_request& request, uint64_t sequence, uint32_t events_max) {
  event_log& log = *request.client.group().events;
  change_count& changes = log.changes();
  while (true) {
    if (!request.context->live()) {
      request.refuse(
          {request.context->ended.load(), "nothing has happened behind event " + std::to_string(sequence)});
      co_return;
    }
    auto found = log.read(sequence, events_max);
    if (found.lost) {
      request.client.environment().client_probe->lost_subscriber();
      request.refuse({errc::gone, "the subscription has read up to event " + std::to_string(sequence) +
                                      ", and only those from " + std::to_string(found.oldest) + " to " +
                                      std::to_string(found.last) +
                                      " are kept: begin with a new snapshot, and read faster"});
      co_return;
    }
    if (!found.events.empty()) {
      event_position next{found.events.back().sequence};
      tell_events(request, found.events, false, next);
      co_return;
    }
    request.context->work.end(); // a subscriber waits most of the time
    co_await request.changed(changes, sequence);
  }
}

task<> list_tier(client_request& request, tier_actor tier, tier_kind kind, event_position from) {
  list_objects_request some{from.slot};
  auto listed = co_await request.ask<list_objects_answer>(tier, std::move(some), "a tier has ended");
  std::vector<tier_event> events;
  for (const object_key& key : listed.objects)
    events.push_back({from.sequence, event_kind::admit, kind, key});
  request.client.group().events->count_chunk_objects(events);
  event_position next{from.sequence, from.tier, listed.next};
  if (listed.last) {
    next = {from.sequence};
    for (const tier_handle& other : request.client.group().tiers())
      if (other.kind > kind) {
        next.tier = static_cast<uint8_t>(other.kind);
        break;
      }
  }
  tell_events(request, events, true, next);
}

} // namespace

task<> subscribe(client_request& request, const wire::Subscribe& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("events tell what all clients of the trust group store");
  request.inbox().set_deadline(request, asked.deadline_ms());
  event_position from{asked.sequence(), asked.tier(), asked.slot()};
  bool first = from.sequence == 0 && from.tier == in_no_snapshot;
  if (first)
    from = {client.group().events->begin(), static_cast<uint8_t>(memory_tier), 0};
  if (from.tier == in_no_snapshot) {
    uint32_t events_max = asked.events_max();
    request.release_body();
    co_await follow_events(request, from.sequence, events_max);
    co_return;
  }
  const tier_handle* tier = client.group().tier(static_cast<tier_kind>(from.tier));
  if (tier == nullptr) {
    request.refuse(
        {errc::bad_request, "tier " + std::to_string(from.tier) +
                                " of the cursor is none of this trust group: expected the cursor of "
                                "the last answer"});
    co_return;
  }
  co_await list_tier(request, tier->tier, tier->kind, from);
}

} // namespace terrace::actors::verbs
