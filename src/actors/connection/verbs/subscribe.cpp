// subscribe: what the tiers have, and then what comes and goes.
#include "actors/connection/verbs.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/objects/list_objects.hpp"

#include <cstring>
#include <utility>

namespace terrace::actors::verbs {

namespace {

constexpr auto in_no_snapshot = static_cast<uint8_t>(tier_kind::none);

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
          static_cast<uint16_t>(event.what),
          static_cast<uint16_t>(event.tier),
          event.chunk_objects};
}

struct event_position {
  uint64_t sequence = 0;
  uint8_t tier = in_no_snapshot;
  uint32_t slot = 0;
};

void tell_events(connection& client, const connection::request& what, const std::vector<tier_event>& events,
                 bool snapshot, const event_position& next) {
  uint64_t last = client.group().events->read(next.sequence, 0).last;
  std::vector<wire::Event> all;
  all.reserve(events.size());
  for (const tier_event& event : events)
    all.push_back(event_to_wire(event));
  client.environment().client_probe->told_events(all.size());
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSubscribeAnswer(body, body.CreateVectorOfStructs(all), snapshot, next.sequence,
                                       next.tier, next.slot, last);
  });
}

/// The events behind `sequence`, now or when there are some.
void follow_events(connection& client, const connection::request& what, uint64_t sequence,
                   uint32_t events_max) {
  if (!what.context->live()) {
    client.refuse(
        what, {what.context->ended.load(), "nothing has happened behind event " + std::to_string(sequence)});
    return;
  }
  event_log& log = *client.group().events;
  auto found = log.read(sequence, events_max);
  if (found.lost) {
    client.environment().client_probe->lost_subscriber();
    client.refuse(what, {errc::gone, "the subscription has read up to event " + std::to_string(sequence) +
                                         ", and only those from " + std::to_string(found.oldest) + " to " +
                                         std::to_string(found.last) +
                                         " are kept: begin with a new snapshot, and read faster"});
    return;
  }
  if (!found.events.empty()) {
    tell_events(client, what, found.events, false, {found.events.back().sequence});
    return;
  }
  what.context->work.end(); // a subscriber waits most of the time
  // Whichever comes first, once.
  auto again = std::make_shared<std::function<void()>>();
  *again = [&client, what, sequence, events_max, told = false]() mutable {
    if (!std::exchange(told, true))
      follow_events(client, what, sequence, events_max);
  };
  client.when_ended(what, again);
  log.wait(sequence, what.context, client.on_any_thread([again] { (*again)(); }));
}

void list_tier(connection& client, const connection::request& what, const tier_parts& tier,
               const event_position& from) {
  client.ask(what, tier.tier, list_objects_request{from.slot}, "a tier has ended",
             [&client, what, from, kind = tier.kind](const list_objects_answer& answer) {
               std::vector<tier_event> events;
               for (const object_key& key : answer.objects)
                 events.push_back({from.sequence, event_kind::admit, kind, key});
               client.group().events->count_chunk_objects(events);
               event_position next{from.sequence, from.tier, answer.next};
               if (answer.last) {
                 next = {from.sequence};
                 for (const tier_parts& other : client.group().tiers())
                   if (other.kind > kind) {
                     next.tier = static_cast<uint8_t>(other.kind);
                     break;
                   }
               }
               tell_events(client, what, events, true, next);
             });
}

} // namespace

void subscribe(connection& client, const connection::request& what, const wire::Subscribe& asked,
               protocol::descriptor_list&) {
  if (!client.may_govern(what, "events tell what all clients of the trust group store"))
    return;
  client.set_deadline(what, asked.deadline_ms());
  event_position from{asked.sequence(), asked.tier(), asked.slot()};
  bool first = from.sequence == 0 && from.tier == in_no_snapshot;
  if (first)
    from = {client.group().events->begin(), static_cast<uint8_t>(tier_kind::host), 0};
  if (from.tier == in_no_snapshot) {
    follow_events(client, what, from.sequence, asked.events_max());
    return;
  }
  const tier_parts* tier = client.group().tier(static_cast<tier_kind>(from.tier));
  if (tier == nullptr)
    client.refuse(
        what, {errc::bad_request, "tier " + std::to_string(from.tier) +
                                      " of the cursor is none of this trust group: expected the cursor of "
                                      "the last answer"});
  else
    list_tier(client, what, *tier, from);
}

} // namespace terrace::actors::verbs
