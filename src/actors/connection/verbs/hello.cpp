// hello: the handshake, first frame of every connection.
#include "actors/connection/connection_actor.hpp"
#include "actors/connection/verbs.hpp"

#include <caf/send.hpp>

#include <cassert>
#include <cstring>

namespace terrace::actors::verbs {

namespace {

/// Handles closed connections of the same process from which it no longer reads.
void confirm_ended(connection& client, const wire::Hello& hello) {
  const auto& boot = client.environment().boot.bytes;
  if (hello.resumes() == nullptr || hello.resumes_boot() == nullptr ||
      hello.resumes_boot()->size() != boot.size() ||
      std::memcmp(hello.resumes_boot()->data(), boot.data(), boot.size()) != 0)
    return;
  assert(hello.resumes()->size() <= protocol::resumes_max);
  for (uint64_t id : *hello.resumes())
    if (auto old = client.environment().clients->find(static_cast<connection_id>(id))) {
      client.environment().clients->confirm(old->id, client.who().pid); // this one may need its place
      caf::anon_send(old->actor, confirm_notice{client.who().pid});
    }
}

} // namespace

void hello(connection& client, const connection::request& what, const wire::Hello& asked,
           protocol::descriptor_list&) {
  if (asked.version() != protocol::version) {
    client.environment().client_probe->refused(metrics::refusal::version);
    client.refuse(what, {errc::unsupported, "protocol version " + std::to_string(asked.version()) +
                                                " is not supported; expected " +
                                                std::to_string(protocol::version)});
    return;
  }
  confirm_ended(client, asked);
  if (auto greeted = client.greeted(asked.client_name()->str(), asked.observes()); !greeted) {
    client.end(greeted.error());
    return;
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<std::string> features{"sha256_cbor", "sha256", "xxh3_128", "memfd_regions"};
    if (!client.group().isolated)
      features.insert(features.end(), {"mapped_arena", "staging"});
    for (const tier_parts& tier : client.group().tiers())
      if (tier.kind != tier_kind::host)
        features.emplace_back(to_string(tier.kind));
    const auto& limits = client.environment().limits;
    auto boot =
        body.CreateVector(client.environment().boot.bytes.data(), client.environment().boot.bytes.size());
    auto listed = body.CreateVectorOfStrings(features);
    auto group = body.CreateString(client.group().name);
    auto version = body.CreateString(TERRACE_VERSION);
    return wire::CreateHelloAnswer(body, protocol::version, version, boot,
                                   static_cast<uint64_t>(client.record()->id), group, listed,
                                   limits.credit_requests, limits.credit_bytes, protocol::frame_bytes_max);
  });
}

} // namespace terrace::actors::verbs
