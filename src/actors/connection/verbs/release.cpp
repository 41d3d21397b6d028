// release: ends a lease.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> release(client_request& request, const wire::Release& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto id = protocol::to_lease_id(asked.lease());
  bool later = client.holdings().ends_elsewhere(id);
  if (!request.actor.release_lease(id)) {
    request.refuse({errc::gone, "this connection neither owns nor reads such a lease"});
    co_return;
  }
  if (later) { // the answer says that what it held may be evicted
    co_await request.leases_ended();
  }
  request.reply(wire::CreateReleaseAnswer);
}

} // namespace terrace::actors::verbs
