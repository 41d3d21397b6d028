#include "bench/raw_space.hpp"

#include "bench/harness.hpp"
#include "bench/sockets.hpp"

namespace terrace::bench {

using protocol::kind;

namespace {
constexpr uint64_t only_id = 1;
}

raw_space::raw_space(const std::string& socket, const client::space_spec& spec)
    : client_(connect_to(socket)) {
  ask(test::hello_frame(only_id));
  auto answer = ask(test::frame_with(kind::open_space, only_id, [&](flatbuffers::FlatBufferBuilder& open) {
    std::vector<flatbuffers::Offset<wire::Pool>> pools;
    for (auto& pool : spec.pools)
      pools.push_back(wire::CreatePool(open, open.CreateString(pool.name), pool.object_bytes));
    auto model = open.CreateString(spec.model), dtype = open.CreateString(spec.dtype);
    auto layout = open.CreateString(spec.layout);
    auto pool_list = open.CreateVector(pools);
    wire::OpenSpaceBuilder space(open);
    space.add_model(model);
    space.add_dtype(dtype);
    space.add_layout(layout);
    space.add_pools(pool_list);
    space.add_chunk_tokens(spec.chunk_tokens);
    space.add_hash_block_tokens(spec.hash_block_tokens);
    space.add_algorithm(static_cast<wire::HashAlgorithm>(spec.algorithm));
    return space.Finish();
  }));
  space_ = answer.as<wire::OpenSpaceAnswer>().space();
}

std::vector<uint8_t> raw_space::lookup_frame(std::span<const digest> digests) const {
  return test::frame_with(kind::lookup, only_id, [&](flatbuffers::FlatBufferBuilder& body) {
    auto flat = body.CreateVector(reinterpret_cast<const uint8_t*>(digests.data()), digests.size_bytes());
    wire::PrefixBuilder prefix(body);
    prefix.add_digests(flat);
    auto what = prefix.Finish();
    wire::LookupBuilder lookup(body);
    lookup.add_space(space_);
    lookup.add_prefix(what);
    return lookup.Finish();
  });
}

size_t raw_space::round_trip(std::span<const uint8_t> frame) {
  return protocol::header_bytes + ask(frame).body.size();
}

test::received raw_space::ask(std::span<const uint8_t> frame) {
  auto answer = client_.send(frame) ? client_.receive() : std::nullopt;
  if (!answer)
    give_up("the daemon ended the connection");
  if (answer->is_error())
    give_up(answer->text());
  return std::move(*answer);
}

} // namespace terrace::bench
