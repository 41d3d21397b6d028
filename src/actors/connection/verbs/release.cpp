// release: ends a lease.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void release(connection& client, const connection::request& what, const wire::Release& asked,
             protocol::descriptor_list&) {
  if (!client.release_lease(protocol::to_lease_id(asked.lease()))) {
    client.refuse(what, {errc::gone, "this connection neither owns nor reads such a lease"});
    return;
  }
  client.reply(what, wire::CreateReleaseAnswer);
}

} // namespace terrace::actors::verbs
