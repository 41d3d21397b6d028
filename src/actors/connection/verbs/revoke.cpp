// revoke: ends a lease of any connection of the trust group.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

/// The lease is marked first, so that no connection begins to read under it after it was asked.
struct revocation {
  connection& client;
  connection::request what;
  lease_id id;
  std::vector<client_ptr> clients; ///< that are still to be asked
  uint32_t holders = 0;
  uint64_t quarantined_bytes = 0;
};
using revocation_ptr = std::shared_ptr<revocation>;

void finish(const revocation_ptr& all) {
  all->client.resume_after_lease_ends(all->what, [all] { // the answer says that what it held may be evicted
    all->client.reply(all->what, [&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreateRevokeAnswer(body, all->holders, all->quarantined_bytes);
    });
  });
}

/// One after the other: if this connection ends meanwhile, the lease is still listed and can be revoked again.
void ask_next(const revocation_ptr& all) {
  if (all->clients.empty()) {
    finish(all);
    return;
  }
  client_ptr next = std::move(all->clients.back());
  all->clients.pop_back();
  all->client.ask(next->actor, revoke_request{all->id},
                  all->client.guarded(all->what,
                                      [all](const revoke_answer& answer) {
                                        all->holders += answer.held ? 1 : 0;
                                        all->quarantined_bytes += answer.quarantined_bytes;
                                        ask_next(all);
                                      }),
                  [all] { ask_next(all); }); // it has ended, and so has what it held
}

} // namespace

void revoke(connection& client, const connection::request& what, const wire::Revoke& asked,
            protocol::descriptor_list&) {
  if (!client.may_govern(what, "a revoked lease ends for its owner and all readers"))
    return;
  auto id = protocol::to_lease_id(asked.lease());
  client.ask(what, client.group().group, mark_revoked_request{id}, "the trust group's actor has ended",
             [&client, what, id](const mark_revoked_answer& marked) {
               if (!client.ok(what, marked.failure))
                 return;
               auto all = std::make_shared<revocation>(revocation{client, what, id, {}});
               all->clients = client.environment().clients->of_group(client.group().name);
               ask_next(all);
             });
}

} // namespace terrace::actors::verbs
