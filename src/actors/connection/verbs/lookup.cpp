// lookup: the number and tiers of the leading chunks that are present, and optionally a lease on them.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/session_prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/transfer/lookup_actor.hpp"
#include "base/random_id.hpp"
#include "connection/found_lease.hpp"
#include "connection/lookup_answers.hpp"
#include "connection/named_lookup.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

namespace {

/// A lookup in progress.
struct subject {
  client_space_ptr in;
  bool lease_wanted = false;
  bool loads = true;       ///< false: nothing is searched
  size_t digest_width = 0; ///< of the digests to return; 0: none
  std::shared_ptr<const chunk_prefix> prefix;
  std::shared_ptr<named_lookup> name; ///< null: it has no id
  hashed_turn turn;                   ///< of the session that it continues; `after` is null if there is none
};

session_answer session_of(const subject& of) {
  if (!of.turn.after)
    return {};
  return {of.turn.after->tokens(), of.turn.after->last(), of.in->hasher->width()};
}

void answer(connection& client, const connection::request& what, const subject& of,
            const lookup_answer& found) {
  const prefix_plan& plan = found.plan;
  const space_spec& spec = of.in->what->spec;
  if (of.loads)
    count_hits(*of.in->probe, spec, plan);
  client.count_recomputed(spec, found.recompute_chunks);
  lease_ptr held;
  if (found.shortened)
    client.environment().client_probe->lease_shortened();
  if (of.lease_wanted && plan.found_chunks != 0 && what.context->live()) {
    held = lease_on(found, *of.prefix, of.in->what, random_lease_id(), client.record()->id,
                    client.environment().now());
    if (!client.may_lease(what) || !client.ok(what, client.holdings().may_name(objects_of(*held))))
      return;
    client.add_lease(held);
  }
  if (of.name) {
    auto outcome = outcome_of(found, spec, held);
    if (held)
      outcome.end_lease = client.lease_ender(held->id);
    of.name->answered(std::move(outcome));
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_lookup_answer(body, plan, found.recompute_chunks, held ? held->id : lease_id{},
                               {of.prefix->chunks, of.digest_width}, session_of(of));
  });
}

void search(connection& client, const connection::request& what, const wire::Lookup& asked, subject of) {
  lookup_request request;
  request.group = client.group_handle();
  request.in = of.in->what;
  request.objects = {of.in->what, {of.prefix, &of.prefix->chunks}};
  request.context = what.context;
  request.plan = {static_cast<uint32_t>(of.prefix->chunks.size()), of.prefix->first_token,
                  of.prefix->prompt_tokens};
  request.tiers = tiers_of(asked, of.in->defaults);
  request.hold = of.lease_wanted;
  request.account = client.leased();
  request.prefill_tokens_per_s = client.prefill_speed(asked.options(), *of.in);
  request.note_access = of.lease_wanted && what.context->inference == 0;
  if (of.lease_wanted && of.loads) {
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
               else if (of.turn.after) // a lookup that ends before leaves its session as it was
                 save_turn(client, what, of.turn, [&client, what, of, kept = lookup_answer(found)] {
                   answer(client, what, of, kept);
                 });
               else
                 answer(client, what, of, found);
             });
}

/// `body`: keeps the frame of `asked`; null while the frame is being served.
void look_up(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
             keep_alive body) {
  size_t objects = object_source(of.in->what, {of.prefix, &of.prefix->chunks}).size();
  if (!of.lease_wanted)
    objects /= 64; // only the plan is kept
  if (!body && connection::may_wait_for_room(objects))
    body = client.hold_body();
  client.with_room(what, objects,
                   [&client, what, &asked, of = std::move(of), body = std::move(body)]() mutable {
                     search(client, what, asked, std::move(of));
                   });
}

/// `body`: as above.
void begin(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
           keep_alive body) {
  auto in = of.in;
  if (asked.prefix()->session() != nullptr) {
    with_turn(client, what, *in, *asked.prefix(),
              [&client, what, &asked, of = std::move(of), body = std::move(body)](
                  chunk_prefix prefix, const hashed_turn& turn, const keep_alive& hashed) {
                subject ready = of;
                ready.turn = turn;
                ready.prefix = std::make_shared<const chunk_prefix>(std::move(prefix));
                look_up(client, what, asked, std::move(ready), body ? body : hashed);
              });
    return;
  }
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, &asked, of = std::move(of),
               body = std::move(body)](chunk_prefix prefix, const keep_alive& hashed) mutable { // called once
                of.prefix = std::make_shared<const chunk_prefix>(std::move(prefix));
                look_up(client, what, asked, std::move(of), body ? body : hashed);
              });
}

std::shared_ptr<named_lookup> name_lookup(connection& client, const connection::request& what,
                                          const lookup_id& id) {
  return std::make_shared<named_lookup>(id, what.context,
                                        [group = client.group().group](finish_lookup_notice notice) {
                                          caf::anon_send(group, std::move(notice));
                                        });
}

/// Registered in the trust group before the lookup starts.
void begin_named(connection& client, const connection::request& what, const wire::Lookup& asked, subject of) {
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto body = client.hold_body();
  of.name = name_lookup(client, what, id);
  client.ask(what, client.group().group, begin_lookup_request{id, what.context},
             "the trust group's actor has ended",
             [&client, what, &asked, of = std::move(of), body](const begin_lookup_answer& answer) mutable {
               if (client.ok(what, answer.failure))
                 begin(client, what, asked, std::move(of), std::move(body));
             });
}

/// Answers all requests that wait for its id with `gone`.
void refused(connection& client, const connection::request& what, const wire::Lookup& asked) {
  if (asked.lookup_id() == nullptr || asked.lookup_id()->size() != lookup_id{}.bytes.size())
    return;
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto name = name_lookup(client, what, id);
  caf::anon_send(client.group().group, begin_lookup_request{id, what.context}); // before the notice of `name`
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
  bool loads = !client.loads_nothing(asked.options(), *in);
  subject of{std::move(in), asked.lease(), loads, asked.digests() ? width : 0, nullptr, nullptr, {}};
  if (asked.lookup_id() != nullptr)
    begin_named(client, what, asked, std::move(of));
  else
    begin(client, what, asked, std::move(of), nullptr);
}

} // namespace terrace::actors::verbs
