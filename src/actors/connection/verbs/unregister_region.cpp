// unregister_region: the daemon gives the client's memory up, as soon as the transfers in flight are done with it.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void unregister_region(connection& client, const connection::request& what,
                       const wire::UnregisterRegion& asked, protocol::descriptor_list&) {
  if (!client.remove_region(static_cast<region_id>(asked.region()))) {
    client.refuse(what, {errc::not_found,
                         "this connection has not registered region " + std::to_string(asked.region())});
    return;
  }
  client.reply(what,
               [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateUnregisterRegionAnswer(body); });
}

} // namespace terrace::actors::verbs
