// pin: keeps what is found of a prompt until it is unpinned.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "base/random_id.hpp"
#include "group/found_lease.hpp"

namespace terrace::actors::verbs {

namespace {

struct pinning {
  connection& client;
  connection::request what;
  client_space_ptr in;
  std::shared_ptr<const chunk_prefix> prefix;
};
using pinning_ptr = std::shared_ptr<const pinning>;

void answer(const pinning& of, const lease_ptr& held) {
  of.client.reply(of.what, [&](flatbuffers::FlatBufferBuilder& body) {
    auto requested = static_cast<uint32_t>(of.prefix->chunks.size());
    if (!held)
      return wire::CreatePinAnswer(body, requested);
    auto id = body.CreateVector(held->id.bytes.data(), held->id.bytes.size());
    auto pinned = static_cast<uint32_t>(held->chunks.size());
    return wire::CreatePinAnswer(body, requested, pinned, tokens_of(*held), held->bytes, id);
  });
}

/// The group keeps the lease from now on.
void keep(const pinning_ptr& of, const lookup_answer& found) {
  connection& client = of->client;
  if (found.plan.found_chunks == 0) {
    answer(*of, nullptr);
    return;
  }
  auto held = lease_on(found, *of->prefix, of->in->what, random_lease_id(), connection_id{},
                       client.environment().now(), reference_kind::pin);
  uint64_t most = client.group().memory->size() / 100 * client.environment().limits.pin_percent;
  client.ask(of->what, client.group().group, pin_request{held, of->prefix->chunks.back(), most},
             "the trust group's actor has ended", [of, held](const pin_answer& pinned) {
               if (of->client.ok(of->what, pinned.failure))
                 answer(*of, held);
             });
}

/// What it finds is charged to nobody's share: pins have their own bound.
void search(const pinning_ptr& of) {
  connection& client = of->client;
  lookup_request request;
  request.group = client.group_handle();
  request.in = of->in->what;
  request.objects = {of->in->what, {of->prefix, &of->prefix->chunks}};
  request.context = of->what.context;
  request.plan = {static_cast<uint32_t>(of->prefix->chunks.size()), of->prefix->first_token,
                  of->prefix->prompt_tokens};
  request.hold = true;
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(of->what, worker, std::move(request), "the lookup's actor has ended",
             [of, worker](const lookup_answer& found) {
               of->client.idle_lookups().put_back(worker);
               if (found.failure.code != errc::ok)
                 of->client.refuse(of->what, found.failure);
               else
                 keep(of, found);
             });
}

} // namespace

void pin(connection& client, const connection::request& what, const wire::Pin& asked,
         protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_govern(what, "a pin takes memory from all clients of the trust group"))
    return;
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, in](chunk_prefix prefix, const keep_alive&) {
                if (prefix.chunks.empty()) {
                  client.refuse(what, {errc::bad_request, "expected a prompt of at least one whole chunk"});
                  return;
                }
                auto of = std::make_shared<const pinning>(
                    pinning{client, what, in, std::make_shared<const chunk_prefix>(std::move(prefix))});
                size_t objects = object_source(in->what, {of->prefix, &of->prefix->chunks}).size();
                client.with_room(what, objects, [of] { search(of); });
              });
}

} // namespace terrace::actors::verbs
