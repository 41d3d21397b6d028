// map_segment: a descriptor of an arena segment, or of the connection's staging memory, to be mapped by the
// client.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> map_segment(client_request& request, const wire::MapSegment& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  if (!request.may_map("load and store with a region"))
    co_return;
  const arena* memory = nullptr;
  std::shared_ptr<const arena> mapped;
  if (asked.segment() == staging_segment) {
    auto staging = client.staging_memory();
    co_await request.valid(staging);
    memory = &(*staging)->memory();
  } else if (mapped = client.group().memory->lend(asked.segment()); mapped) {
    client.holdings().keep_segment(asked.segment(), mapped);
    memory = mapped.get();
  } else {
    uint32_t numbered = client.group().memory->segments();
    request.refuse({errc::not_found, "there is no segment " + std::to_string(asked.segment()) +
                                         (asked.segment() < numbered ? " any more" : "") +
                                         "; the arena has numbered " + std::to_string(numbered)});
    co_return;
  }
  auto descriptor = memory->duplicate();
  co_await request.valid(descriptor);
  std::vector<unique_fd> descriptors;
  descriptors.push_back(std::move(*descriptor));
  request.reply(
      [&](flatbuffers::FlatBufferBuilder& body) {
        return wire::CreateMapSegmentAnswer(body, asked.segment(), memory->size(),
                                            memory->client_may_write());
      },
      std::move(descriptors));
}

} // namespace terrace::actors::verbs
