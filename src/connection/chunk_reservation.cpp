#include "connection/chunk_reservation.hpp"

#include "protocol/frame_builder.hpp"

#include <string>
#include <utility>

namespace terrace {

result<void> may_reserve(const transfer_scope& scope) {
  if (scope.objects() <= reserved_objects_max)
    return {};
  return fail(errc::bad_request,
              std::to_string(scope.objects()) + " objects were asked for: expected at most " +
                  std::to_string(reserved_objects_max) + " in a reservation; reserve fewer chunks at a time");
}

result<chunk_reservation> reserve_absent(staging& memory, const space_ptr& space, const batch_ptr& all,
                                         size_t objects_per_chunk, const object_bitmap& present) {
  chunks_to_write to_write = absent_chunks(*all, objects_per_chunk, present);
  staged reservation;
  reservation.space = space;
  reservation.objects = to_write.objects;
  reservation.objects_per_chunk = objects_per_chunk;
  reservation.present_objects = all->size() - to_write.objects->size();
  auto id = memory.reserve(std::move(reservation), to_write.objects->payload_bytes);
  if (!id)
    return tl::unexpected(id.error());
  return chunk_reservation{*id, all, std::move(to_write.wanted)};
}

result<chunk_reservation> reserve_nothing(staging& memory, const space_ptr& space, const batch_ptr& all,
                                          size_t objects_per_chunk) {
  staged reservation;
  reservation.space = space;
  reservation.objects = std::make_shared<const object_batch>();
  reservation.objects_per_chunk = objects_per_chunk;
  auto id = memory.reserve(std::move(reservation), {});
  if (!id)
    return tl::unexpected(id.error());
  return chunk_reservation{*id, all, std::vector<bool>(all->size())};
}

flatbuffers::Offset<wire::ReserveAnswer> write_reserve_answer(flatbuffers::FlatBufferBuilder& body,
                                                              const chunk_reservation& reserved,
                                                              const staging& memory) {
  const auto& extents = memory.find(reserved.id)->extents;
  const object_batch& all = *reserved.all;
  std::vector<wire::Location> locations;
  locations.reserve(all.size());
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (reserved.wanted[i])
      locations.emplace_back(extents[next++].offset, all.payload_bytes[i], staging_segment, 0);
    else
      locations.emplace_back(0, 0, staging_segment, 0);
  return wire::CreateReserveAnswer(body, reserved.id, staging_segment,
                                   protocol::create_structs(body, locations));
}

} // namespace terrace
