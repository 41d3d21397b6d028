// register_region: client memory that the daemon may copy from and into.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void register_region(connection& client, const connection::request& what, const wire::RegisterRegion& asked,
                     protocol::descriptor_list& descriptors) {
  if (asked.kind() != wire::RegionKind::memfd) {
    client.refuse(what, {errc::unsupported, "this daemon was started without GPU memory; register a memfd"});
    return;
  }
  auto region = client_region::open(std::move(descriptors[0]), asked.bytes(), client.regions());
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

} // namespace terrace::actors::verbs
