// lookup: the number and tiers of the leading chunks that are present, and optionally a lease on them.
#include "actors/connection/named_lookup.hpp"
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/transfer/lookup_actor.hpp"
#include "base/random_id.hpp"
#include "connection/lookup_answers.hpp"

namespace terrace::actors::verbs {

namespace {

void count_hits(const client_space& in, const prefix_plan& plan) {
  uint64_t chunk_tokens = in.what->spec.chunk_tokens;
  in.probe->asked(plan.requested_chunks * chunk_tokens);
  auto chunks = chunks_by_tier(plan);
  for (size_t tier = 0; tier < chunks.size(); ++tier)
    if (chunks[tier] != 0)
      in.probe->hit(static_cast<tier_kind>(tier), chunks[tier] * chunk_tokens);
}

/// A lookup in progress.
struct subject {
  client_space_ptr in;
  bool lease_wanted = false;
  size_t digest_width = 0; ///< of the digests to return; 0: none
  std::shared_ptr<const chunk_prefix> prefix;
  std::shared_ptr<named_lookup> name; ///< null: it has no id
};

lease_ptr take_lease(connection& client, const subject& of, const lookup_answer& found) {
  auto taken = std::make_shared<lease>();
  taken->id = random_lease_id();
  taken->owner = client.record()->id;
  taken->in = of.in->what;
  taken->chunks.assign(of.prefix->chunks.begin(), of.prefix->chunks.begin() + found.plan.found_chunks);
  taken->before = of.prefix->parent;
  taken->first_token = of.prefix->first_token;
  taken->held = found.held;
  taken->taken = client.environment().now();
  client.add_lease(taken);
  return taken;
}

void answer(connection& client, const connection::request& what, const subject& of,
            const lookup_answer& found) {
  const prefix_plan& plan = found.plan;
  count_hits(*of.in, plan);
  lease_ptr held;
  if (found.shortened)
    client.environment().client_probe->lease_shortened();
  if (of.lease_wanted && plan.found_chunks != 0 && what.context->live()) {
    lease counted;
    counted.held = found.held;
    size_t objects = objects_of(counted);
    if (!client.may_lease(what) || !client.may_name(what, objects))
      return;
    held = take_lease(client, of, found);
  }
  if (of.name) {
    lookup_outcome outcome;
    outcome.chunk_tokens = of.in->what->spec.chunk_tokens;
    outcome.plan = plan;
    outcome.plan.object_tiers = {}; // no longer needed
    outcome.leased = held != nullptr;
    outcome.held = held;
    if (held)
      outcome.end_lease = client.lease_ender(held->id);
    of.name->answered(std::move(outcome));
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_lookup_answer(body, plan, held ? held->id : lease_id{},
                               {of.prefix->chunks, of.digest_width});
  });
}

void look_up(connection& client, const connection::request& what, const wire::Lookup& asked, subject of) {
  lookup_request request;
  request.group = client.group_handle();
  request.in = of.in->what;
  request.objects = {of.in->what, {of.prefix, &of.prefix->chunks}};
  request.context = what.context;
  request.plan = {static_cast<uint32_t>(of.prefix->chunks.size()), of.prefix->first_token,
                  of.prefix->prompt_tokens};
  client.charge_objects(what, of.lease_wanted ? request.objects.size() : request.objects.size() / 64);
  request.tiers = asked.tiers();
  request.hold = of.lease_wanted;
  request.account = client.leased();
  request.note_access = of.lease_wanted && what.context->inference == 0;
  if (of.lease_wanted) {
    client.use_for_inference(what, asked.options(), request.objects);
    client.tell_shadows(what, asked.options(), of.in->what, of.prefix);
  }
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(what, worker, std::move(request), "the lookup's actor has ended",
             [&client, what, of = std::move(of), worker](const lookup_answer& found) {
               client.idle_lookups().put_back(worker);
               if (found.failure.code != errc::ok)
                 client.refuse(what, found.failure);
               else if (!what.context->live())
                 client.refuse(what, {what.context->ended.load(), "the lookup ended before it was answered"});
               else
                 answer(client, what, of, found);
             });
}

/// `body`: keeps the frame of `asked`; null while the frame is being served.
void begin(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
           keep_alive body) {
  auto in = of.in;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, &asked, of = std::move(of), body = std::move(body)](chunk_prefix prefix,
                                                                                  const keep_alive&) {
                subject ready = of;
                ready.prefix = std::make_shared<const chunk_prefix>(std::move(prefix));
                look_up(client, what, asked, std::move(ready));
              });
}

/// Registered in the trust group before the lookup starts.
void begin_named(connection& client, const connection::request& what, const wire::Lookup& asked, subject of) {
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto body = client.channel().hold();
  of.name = std::make_shared<named_lookup>(client.group().group, id, what.context);
  client.ask(what, client.group().group, begin_lookup_request{id, what.context},
             "the trust group's actor has ended",
             [&client, what, &asked, of = std::move(of), body](const begin_lookup_answer& answer) mutable {
               if (client.ok(what, answer.failure))
                 begin(client, what, asked, std::move(of), std::move(body));
             });
}

void refused(connection& client, const connection::request& what, const wire::Lookup& asked) {
  if (asked.lookup_id() != nullptr && asked.lookup_id()->size() == lookup_id{}.bytes.size())
    refuse_named_lookup(client.group().group, protocol::to_lookup_id(asked.lookup_id()), what.context);
}

} // namespace

void lookup_refused(connection& client, const connection::request& what, std::span<const uint8_t> body) {
  if (auto asked = protocol::well_formed<wire::Lookup>(body))
    refused(client, what, **asked);
}

void lookup(connection& client, const connection::request& what, const wire::Lookup& asked,
            protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto in = client.find_space(what, asked.space());
  if (!in) {
    refused(client, what, asked);
    return;
  }
  size_t width = asked.prefix()->digests() ? asked.prefix()->digest_width() : in->hasher->width();
  subject of{std::move(in), asked.lease(), asked.digests() ? width : 0, nullptr, nullptr};
  if (asked.lookup_id() != nullptr)
    begin_named(client, what, asked, std::move(of));
  else
    begin(client, what, asked, std::move(of), nullptr);
}

} // namespace terrace::actors::verbs
