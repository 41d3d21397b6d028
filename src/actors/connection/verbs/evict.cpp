// evict: removes the objects of a prompt from tiers.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/search/probe.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

/// Objects that a tier is asked for at a time.
constexpr size_t objects_at_a_time = 1'024;

/// The fastest tier first, and once more at the end, as for a clear (tier/objects/clear_course.hpp): so no concurrent transfer
/// brings back what was removed. A tier at a time, and some objects at a time: the tier holds those that it has, is told that they are unwanted, and
/// frees them when the hold ends.
struct eviction {
  connection& client;
  connection::request what;
  object_source objects;
  std::vector<tier_actor> tiers; ///< that are still to be asked, from the last one on
  size_t next = 0;               ///< object
  uint64_t removed = 0;
  uint64_t bytes = 0;
};
using eviction_ptr = std::shared_ptr<eviction>;

void go_on(const eviction_ptr& all);

discard_notice unwanted(eviction& all, const object_hold& held) {
  discard_notice notice{{}, discard_reason::unwanted};
  for (const object_place& place : held.places())
    if (place.present()) {
      notice.ids.push_back(place.id);
      ++all.removed;
      all.bytes += place.physical_bytes;
    }
  return notice;
}

/// The tier has read the notice when it has answered this: no lookup finds the objects any more.
void await_removal(const eviction_ptr& all) {
  all->client.ask(all->what, all->tiers.back(), confirm_request{}, "a tier has ended",
                  [all](const confirm_answer&) { go_on(all); });
}

void go_on(const eviction_ptr& all) {
  connection& client = all->client;
  if (!all->what.context->live()) {
    client.refuse(all->what,
                  {all->what.context->ended.load(),
                   "the request ended; " + std::to_string(all->removed) + " objects were removed"});
    return;
  }
  while (all->next >= all->objects.size() && !all->tiers.empty()) {
    all->tiers.pop_back();
    all->next = 0;
  }
  if (all->tiers.empty()) {
    client.reply(all->what, [&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreateEvictAnswer(body, all->removed, all->bytes);
    });
    return;
  }
  auto part = all->objects.cut(all->next, objects_at_a_time);
  all->next += objects_at_a_time;
  probe_request probe;
  probe.objects = part.objects;
  probe.hold = true;
  probe.range = part.range;
  client.ask(all->what, all->tiers.back(), std::move(probe), "a tier has ended",
             [all](const probe_answer& found) {
               if (!found.held) {
                 go_on(all);
                 return;
               }
               all->client.send(all->tiers.back(), unwanted(*all, *found.held));
               await_removal(all);
             });
}

/// `chosen`: bit n: tier_kind n; 0: all.
void add_tiers(eviction& all, uint32_t chosen) {
  for (const tier_parts& tier : all.client.group().tiers())
    if (chosen == 0 || (chosen >> static_cast<unsigned>(tier.kind) & 1) != 0)
      all.tiers.push_back(tier.tier);
  if (all.tiers.size() > 1)
    all.tiers.push_back(all.tiers.front());
  std::reverse(all.tiers.begin(), all.tiers.end());
}

} // namespace

void evict(connection& client, const connection::request& what, const wire::Evict& asked,
           protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_govern(what, "an eviction removes what all clients of the trust group have stored"))
    return;
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, in, tiers = asked.tiers()](chunk_prefix prefix, const keep_alive&) {
                auto chunks = std::make_shared<const std::vector<digest>>(std::move(prefix.chunks));
                auto all = std::make_shared<eviction>(eviction{client, what, {in->what, chunks}, {}});
                add_tiers(*all, tiers);
                client.with_room(what, all->objects.size() / 64,
                                 [all] { go_on(all); }); // some objects at a time
              });
}

} // namespace terrace::actors::verbs
