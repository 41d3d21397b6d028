#include "bench/raw_space.hpp"

#include "bench/harness.hpp"
#include "bench/sockets.hpp"
#include "protocol/frame.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/terrace_generated.h"

namespace terrace::bench {

using protocol::frame_builder;
using protocol::kind;

namespace {

constexpr uint64_t only_id = 1;

} // namespace

raw_space::raw_space(const std::string& socket_path, const client::space_spec& spec)
    : socket_(connect_to(socket_path)) {
  frame_builder builder;
  auto& hello = builder.start();
  auto name = hello.CreateString("terrace-bench");
  builder.finish(kind::hello, only_id, wire::CreateHello(hello, protocol::version, name));
  exchange(builder.bytes());

  auto& open = builder.start();
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
  builder.finish(kind::open_space, only_id, space.Finish());
  auto answer = exchange(builder.bytes());
  space_ = flatbuffers::GetRoot<wire::OpenSpaceAnswer>(answer.data() + protocol::header_bytes)->space();
}

std::vector<uint8_t> raw_space::lookup_frame(std::span<const digest> digests) const {
  frame_builder builder;
  auto& body = builder.start();
  auto flat = body.CreateVector(reinterpret_cast<const uint8_t*>(digests.data()), digests.size_bytes());
  wire::PrefixBuilder prefix(body);
  prefix.add_digests(flat);
  auto what = prefix.Finish();
  wire::LookupBuilder lookup(body);
  lookup.add_space(space_);
  lookup.add_prefix(what);
  builder.finish(kind::lookup, only_id, lookup.Finish());
  return {builder.bytes().begin(), builder.bytes().end()};
}

std::vector<uint8_t> raw_space::exchange(std::span<const uint8_t> frame) {
  std::vector<uint8_t> answer(protocol::header_bytes);
  if (!write_all(socket_.get(), frame) || !read_all(socket_.get(), answer))
    give_up("the daemon ended the connection");
  auto header = protocol::read_header(answer.data());
  answer.resize(header.length);
  if (!read_all(socket_.get(), std::span(answer).subspan(protocol::header_bytes)))
    give_up("the daemon ended the connection");
  if (header.kind == kind::error)
    give_up(flatbuffers::GetRoot<wire::Error>(answer.data() + protocol::header_bytes)->text()->str());
  return answer;
}

} // namespace terrace::bench
