// lookup: how many leading chunks are there, where, and, if wanted, a lease on them.
#include "actors/lookup_actor.hpp"
#include "actors/prefixes.hpp"
#include "actors/verbs.hpp"
#include "base/random_id.hpp"

#include <algorithm>
#include <array>

namespace terrace::actors::verbs {

namespace {

constexpr size_t idle_lookups_max = 32;

caf::actor take_lookup(connection& client) {
  auto& idle = client.idle_lookups();
  if (idle.empty())
    return spawn_lookup(client.self->system(), client.self->where());
  caf::actor taken = std::move(idle.back());
  idle.pop_back();
  return taken;
}

void count_hits(const client_space& in, const prefix_plan& plan) {
  uint64_t chunk_tokens = in.what->spec.chunk_tokens;
  in.probe->asked(plan.requested_chunks * chunk_tokens);
  std::array<uint64_t, 5> chunks{}; // by tier; the last: in none
  for (auto begin = plan.chunk_tiers.begin(); begin != plan.chunk_tiers.end();) { // run by run: there are few
    auto end = std::find_if(begin, plan.chunk_tiers.end(),
                            [tier = *begin](tier_kind other) { return other != tier; });
    chunks[std::min(static_cast<size_t>(*begin), chunks.size() - 1)] += static_cast<uint64_t>(end - begin);
    begin = end;
  }
  for (tier_kind tier : {tier_kind::gpu, tier_kind::host, tier_kind::disk, tier_kind::remote})
    if (uint64_t found = chunks[static_cast<size_t>(tier)]; found != 0)
      in.probe->hit(tier, found * chunk_tokens);
}

void answer(connection& client, const connection::request& what, const client_space& in, bool lease_wanted,
            const chunk_prefix& prefix, const lookup_answer& found) {
  const prefix_plan& plan = found.plan;
  count_hits(in, plan);
  lease_id id;
  if (lease_wanted && plan.found_chunks != 0 && what.context->live()) {
    if (!client.may_lease(what))
      return;
    auto taken = std::make_shared<lease>();
    taken->id = id = random_lease_id();
    taken->owner = client.record()->id;
    taken->in = in.what;
    taken->chunks.assign(prefix.chunks.begin(), prefix.chunks.begin() + plan.found_chunks);
    taken->before = prefix.parent;
    taken->host = found.host;
    taken->disk = found.disk;
    taken->taken = client.environment().now();
    client.add_lease(std::move(taken));
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    static_assert(sizeof(tier_kind) == 1);
    auto tiers =
        body.CreateVector(reinterpret_cast<const uint8_t*>(plan.chunk_tiers.data()), plan.chunk_tiers.size());
    auto lease = id.empty() ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>()
                            : body.CreateVector(id.bytes.data(), id.bytes.size());
    return wire::CreateLookupAnswer(body, plan.requested_chunks, plan.found_chunks, plan.found_tokens,
                                    plan.usable_tokens, tiers, lease);
  });
}

void look_up(connection& client, const connection::request& what, const client_space_ptr& in,
             const wire::Lookup& asked, std::shared_ptr<const chunk_prefix> prefix) {
  bool lease_wanted = asked.lease();
  lookup_request request;
  request.group = client.group_handle();
  request.in = in->what;
  request.objects = keys_of_all_ranks(*in->what, prefix->chunks);
  request.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens};
  request.tiers = asked.tiers();
  request.hold = lease_wanted;
  request.note_use = lease_wanted && what.context->inference == 0;
  if (lease_wanted) {
    client.use_for_inference(what, asked.options(), request.objects);
    client.tell_shadows(what, asked.options(), in->what, prefix);
  }
  caf::actor worker = take_lookup(client);
  client.self->request(worker, caf::infinite, std::move(request))
      .then(
          [&client, what, in, lease_wanted, prefix = std::move(prefix), worker](const lookup_answer& found) {
            if (client.idle_lookups().size() < idle_lookups_max)
              client.idle_lookups().push_back(worker);
            if (found.failure.code != errc::ok)
              client.refuse(what, found.failure);
            else if (!what.context->live())
              client.refuse(what, {what.context->ended.load(), "the lookup ended before it was answered"});
            else
              answer(client, what, *in, lease_wanted, *prefix, found);
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "the lookup's actor has ended"});
          });
}

} // namespace

void lookup(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Lookup>(frame);
  if (request == nullptr)
    return;
  auto in = client.find_space(what, request->space());
  if (!in)
    return;
  client.set_deadline(what, request->deadline_ms());
  connection::set_inference(what, request->options());
  with_chunks(client, what, *in, *request->prefix(), [&client, what, in, request](chunk_prefix prefix) {
    look_up(client, what, in, *request, std::make_shared<const chunk_prefix>(std::move(prefix)));
  });
}

} // namespace terrace::actors::verbs
