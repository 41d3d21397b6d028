// hello: the handshake, first frame of every connection.
#include "actors/connection/connection.hpp"
#include "actors/connection/verbs.hpp"
#include "connection/handshake.hpp"

#include <caf/send.hpp>
#include <cassert>

namespace terrace::actors::verbs {

task<> hello(client_request& request, const wire::Hello& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  const auto& environment = client.environment();
  if (auto version = checked_version(asked); !version) {
    environment.client_probe->refused(metrics::refusal::version);
    request.refuse(version.error());
    co_return;
  }
  auto resumed = resumed_connections(asked, environment.boot);
  assert(resumed.size() <= protocol::resumes_max);
  for (connection_id id : resumed)
    if (auto old = environment.clients->find(id)) {
      environment.clients->confirm(id, client.who().pid); // this one may need its place
      caf::anon_send(old->actor, confirm_notice{client.who().pid});
    }
  if (auto greeted = request.actor.greeted(asked.client_name()->str(), asked.observes()); !greeted) {
    request.inbox().end(greeted.error());
    co_return;
  }
  std::vector<tier_kind> tiers;
  for (const tier_handle& tier : client.group().tiers())
    tiers.push_back(tier.kind);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_hello_answer(body, environment, *client.record(), client.group().isolated, tiers);
  });
}

// bell: an eventfd that the client rings when it has written a counter which one of its requests waits for.

task<> bell(client_request& request, const wire::Bell&, protocol::descriptor_list&) {
  auto descriptor = request.actor.bell();
  co_await request.valid(descriptor);
  std::vector<unique_fd> descriptors;
  descriptors.push_back(std::move(*descriptor));
  request.reply([](flatbuffers::FlatBufferBuilder& body) { return wire::CreateBellAnswer(body); },
                std::move(descriptors));
}

} // namespace terrace::actors::verbs
