// revoke: ends a lease of any connection of the trust group.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> revoke(client_request& request, const wire::Revoke& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  if (!request.may_govern("a revoked lease ends for its owner and all readers"))
    co_return;
  auto id = protocol::to_lease_id(asked.lease());
  // The lease is marked first, so that no connection begins to read under it after it was asked.
  const auto& group = client.group().group;
  mark_revoked_request mark{id};
  auto marked = co_await request.ask<mark_revoked_answer>(group, std::move(mark), group_ended);
  co_await request.valid(marked.failure);
  uint32_t holders = 0;
  uint64_t quarantined_bytes = 0;
  // One after the other: if this connection ends meanwhile, the lease is still listed and can be revoked again.
  auto clients = client.environment().clients->of_group(client.group().name);
  for (const client_ptr& each : clients) {
    revoke_request question{id};
    auto answer = co_await request.try_ask<revoke_answer>(each->actor, std::move(question), "it has ended");
    if (!answer)
      continue; // and so has what it held
    holders += answer->held ? 1 : 0;
    quarantined_bytes += answer->quarantined_bytes;
  }
  co_await request.leases_ended(); // the answer says that what it held may be evicted
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRevokeAnswer(body, holders, quarantined_bytes);
  });
}

} // namespace terrace::actors::verbs
