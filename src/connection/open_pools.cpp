#include "connection/open_pools.hpp"

#include "index/shaped_pools.hpp"
#include "protocol/frame_builder.hpp"

namespace terrace {

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec) {
  std::vector<flatbuffers::Offset<wire::OpenPool>> pools;
  for (const pool_spec& pool : spec.pools) {
    std::vector<wire::TensorPlace> places;
    if (auto shape = shape_of(pool, spec.chunk_tokens))
      for (size_t i = 0; i < shape->tensors().size(); ++i)
        places.emplace_back(shape->offset(i), shape->bytes_of(i), shape->tensors()[i].first_layer,
                            shape->tensors()[i].layers);
    auto name = body.CreateString(pool.name);
    auto tensors = protocol::create_structs(body, places);
    pools.push_back(wire::CreateOpenPool(body, name, pool.object_bytes, tensors));
  }
  return body.CreateVector(pools);
}

flatbuffers::Offset<wire::OpenSpaceAnswer> write_open_space_answer(flatbuffers::FlatBufferBuilder& body,
                                                                   const opened_space& space) {
  auto fingerprint = body.CreateVector(space.fingerprint.bytes.data(), space.fingerprint.bytes.size());
  auto pools = write_open_pools(body, space.spec);
  return wire::CreateOpenSpaceAnswer(body, static_cast<uint32_t>(space.id), fingerprint, pools);
}

} // namespace terrace
