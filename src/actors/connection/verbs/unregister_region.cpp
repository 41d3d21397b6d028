// unregister_region: the daemon releases the client's memory once the transfers in flight are done.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void unregister_region(connection& client, const connection::request& what,
                       const wire::UnregisterRegion& asked, protocol::descriptor_list&) {
  if (!client.find_region(what, asked.region()))
    return;
  client.holdings().remove(static_cast<region_id>(asked.region()));
  client.show();
  client.reply(what, wire::CreateUnregisterRegionAnswer);
}

} // namespace terrace::actors::verbs
