// register_region: client memory that the daemon may copy from and into.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

struct registration {
  std::shared_ptr<unique_fd> memory;
  uint64_t bytes = 0;
  bool again = false; ///< regions that were being unmapped have given their bytes back
};

void try_registration(connection& client, const connection::request& what, registration asked) {
  if (!what.context->live()) {
    client.refuse(what, {what.context->ended.load(), "the request ended before the region was mapped"});
    return;
  }
  auto charge = client.regions()->take(asked.bytes);
  if (!charge && charge.error().code == errc::busy && !asked.again) {
    asked.again = true;
    client.resume_after_teardown(what, [&client, what, asked] { try_registration(client, what, asked); });
    return;
  }
  if (!client.ok(what, charge))
    return;
  auto region = client_region::open(std::move(*asked.memory), asked.bytes,
                                    {std::move(*charge), client.environment().teardown});
  if (!client.ok(what, region))
    return;
  bool mapped = (*region)->mapped();
  auto id = client.holdings().add(std::move(*region));
  client.show();
  if (!client.ok(what, id))
    return;
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRegisterRegionAnswer(body, static_cast<uint32_t>(*id), mapped);
  });
}

} // namespace

void register_region(connection& client, const connection::request& what, const wire::RegisterRegion& asked,
                     protocol::descriptor_list& descriptors) {
  std::shared_ptr<unique_fd> memory(new unique_fd(std::move(descriptors[0])),
                                    deleted_by{client.environment().teardown});
  if (asked.kind() != wire::RegionKind::memfd) {
    client.refuse(what, {errc::unsupported, "this daemon was started without GPU memory; register a memfd"});
    return;
  }
  try_registration(client, what, {std::move(memory), asked.bytes()});
}

} // namespace terrace::actors::verbs
