// register_region, unregister_region: memory of the client that the daemon may copy from and into.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void register_region(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::RegisterRegion>(frame);
  if (request == nullptr)
    return;
  if (request->kind() != wire::RegionKind::memfd) {
    client.refuse(what, {errc::unsupported, "this daemon was started without GPU memory; register a memfd"});
    return;
  }
  auto region = client_region::open(std::move(frame.descriptors[0]), request->bytes());
  if (!region) {
    client.refuse(what, region.error());
    return;
  }
  bool mapped = (*region)->mapped();
  auto id = client.add_region(std::move(*region));
  if (!id) {
    client.refuse(what, id.error());
    return;
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRegisterRegionAnswer(body, static_cast<uint32_t>(*id), mapped);
  });
}

void unregister_region(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::UnregisterRegion>(frame);
  if (request == nullptr)
    return;
  if (!client.remove_region(static_cast<region_id>(request->region()))) {
    client.refuse(what, {errc::not_found,
                         "this connection has not registered region " + std::to_string(request->region())});
    return;
  }
  client.reply(what,
               [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateUnregisterRegionAnswer(body); });
}

} // namespace terrace::actors::verbs
