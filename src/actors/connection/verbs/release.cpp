// release: ends a lease.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void release(connection& client, const connection::request& what, const wire::Release& asked,
             protocol::descriptor_list&) {
  auto id = protocol::to_lease_id(asked.lease());
  bool later = client.lease_ends_elsewhere(id);
  if (!client.release_lease(id)) {
    client.refuse(what, {errc::gone, "this connection neither owns nor reads such a lease"});
    return;
  }
  if (later) // the answer says that what it held may be evicted
    client.resume_after_lease_ends(what, [&client, what] { client.reply(what, wire::CreateReleaseAnswer); });
  else
    client.reply(what, wire::CreateReleaseAnswer);
}

} // namespace terrace::actors::verbs
