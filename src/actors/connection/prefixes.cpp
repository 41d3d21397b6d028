#include "actors/connection/prefixes.hpp"

#include "actors/connection/connection_actor.hpp"
#include "connection/request_values.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::actors {

namespace {

/// Prompts of so few tokens are hashed with the connection's own hasher.
constexpr size_t short_tokens = 16'384;

struct hashing {
  std::shared_ptr<token_hasher> hasher;
  space_ptr in;
  prefix_resolver resolver;
  connection::request what;
  size_t objects; ///< of one rank, about
  chunks_handler then;
  keep_alive body; ///< of the frame, if the work takes more than one slice
};

void hash_on(connection& client, const std::shared_ptr<hashing>& work) {
  if (!work->what.context->live()) {
    client.refuse(work->what,
                  {work->what.context->ended.load(), "the request ended while its prompt was hashed"});
    return;
  }
  if (work->resolver.step(hash_step_work)) {
    work->then(work->resolver.take(), work->body);
    return;
  }
  if (!work->body) { // others are read meanwhile
    work->body = client.channel().hold();
    client.expect_objects(work->what, work->objects);
  }
  client.resume(work->what, [&client, work] { hash_on(client, work); });
}

object_key key_of(const opened_space& in, size_t pool, uint16_t rank, const digest& chunk) {
  return {in.id, static_cast<uint16_t>(pool), in.spec.pools[pool].replicated ? uint16_t{0} : rank, chunk};
}

/// For eviction, an object of a pool that needs every chunk follows the previous one. States of trailing
/// pools follow the chunk they belong to, in the first pool that needs every chunk: without that chunk no
/// prefix ends there, so a state is evicted before it, and an old state may be evicted before a newer one.
entry_key parent_of(const opened_space& in, size_t pool, const object_key& key, const digest* before) {
  object_key parent = key;
  if (in.spec.pools[pool].rule == hit_rule::all_chunks) {
    if (before == nullptr)
      return {};
    parent.chunk = *before;
    return to_entry_key(parent);
  }
  for (size_t other = 0; other < in.spec.pools.size(); ++other)
    if (in.spec.pools[other].rule == hit_rule::all_chunks)
      return to_entry_key(key_of(in, other, key.rank, key.chunk));
  return {};
}

void add(object_batch& batch, const opened_space& in, size_t pool, uint16_t rank, const digest& chunk,
         const digest* before) {
  batch.keys.push_back(key_of(in, pool, rank, chunk));
  batch.parents.push_back(parent_of(in, pool, batch.keys.back(), before));
  batch.payload_bytes.push_back(in.spec.pools[pool].object_bytes);
}

void reserve(object_batch& batch, size_t objects) {
  batch.keys.reserve(objects);
  batch.parents.reserve(objects);
  batch.payload_bytes.reserve(objects);
}

const digest* in_front_of(std::span<const digest> chunks, const std::optional<digest>& before, size_t chunk) {
  if (chunk != 0)
    return &chunks[chunk - 1];
  return before ? &*before : nullptr;
}

} // namespace

void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, chunks_handler then) {
  auto input = input_of(prefix);
  bool short_work = input.tokens.size() <= short_tokens;
  const space_spec& spec = in.what->spec;
  size_t chunks = input.tokens.empty() ? input.digests.size() / std::max<size_t>(input.digest_width, 1)
                                       : input.tokens.size() / spec.chunk_tokens;
  auto hasher = short_work ? in.hasher : std::shared_ptr<token_hasher>(make_token_hasher(in.what->spec));
  auto resolver = prefix_resolver::make(in.what->spec, *hasher, std::move(input));
  if (!resolver) {
    client.refuse(what, resolver.error());
    return;
  }
  hash_on(client, std::make_shared<hashing>(hashing{std::move(hasher), in.what, std::move(*resolver), what,
                                                    chunks * spec.pools.size(), std::move(then), nullptr}));
}

result<chunk_range> checked_range(size_t total, uint32_t first, uint32_t count) {
  if (first > total || count > total - first)
    return fail(errc::bad_request, "chunks " + std::to_string(first) + " to " +
                                       std::to_string(uint64_t{first} + count) +
                                       " were asked for, there are " + std::to_string(total));
  return chunk_range{first, count == 0 ? total - first : count};
}

result<pool_list> checked_pools(const space_spec& spec, const flatbuffers::Vector<uint8_t>* named,
                                size_t chunks) {
  pool_list pools;
  if (named == nullptr) {
    pools.resize(spec.pools.size());
    std::iota(pools.begin(), pools.end(), uint16_t{0});
  } else {
    pools.assign(named->begin(), named->end());
  }
  if (pools.back() >= spec.pools.size())
    return fail(errc::bad_request, "pool number " + std::to_string(pools.back()) +
                                       " was asked for, the space has " + std::to_string(spec.pools.size()) +
                                       " pools");
  if (chunks > transfer_objects_max / pools.size())
    return fail(errc::bad_request, std::to_string(chunks) + " chunks in " + std::to_string(pools.size()) +
                                       " pools were asked for; at most " +
                                       std::to_string(transfer_objects_max) +
                                       " objects may be in one request: ask for fewer chunks or pools");
  return pools;
}

namespace {

/// Objects made between checks for other messages: about 0.2 ms.
constexpr size_t slice_objects = 2'048;

std::shared_ptr<object_batch> begin_batch(const opened_space& in, const transfer_scope& scope) {
  auto batch = std::make_shared<object_batch>();
  reserve(*batch, scope.range.count * scope.pools.size());
  for (size_t pool : scope.pools)
    batch->trailing.set(pool, in.spec.pools[pool].rule == hit_rule::trailing_chunks);
  return batch;
}

/// The objects of chunks [first, end).
void add_chunks(object_batch& batch, const opened_space& in, std::span<const digest> chunks,
                const std::optional<digest>& before, const pool_list& pools, uint16_t rank, size_t first,
                size_t end) {
  for (size_t c = first; c < end; ++c)
    for (size_t pool : pools)
      add(batch, in, pool, rank, chunks[c], in_front_of(chunks, before, c));
}

struct making {
  scope_subject of;
  keep_alive body;
  std::function<void(batch_ptr)> then;
  std::shared_ptr<object_batch> batch;
  size_t next = 0; ///< chunk
};

void make_on(connection& client, const connection::request& what, const std::shared_ptr<making>& work) {
  if (!what.context->live()) {
    client.refuse(what, {what.context->ended.load(), "the request ended while its objects were named"});
    return;
  }
  const auto& [range, pools] = work->of.scope;
  size_t end = std::min(work->next + slice_objects / pools.size() + 1, range.first + range.count);
  add_chunks(*work->batch, *work->of.in, *work->of.chunks, work->of.before, pools, work->of.rank, work->next,
             end);
  work->next = end;
  if (end == range.first + range.count)
    work->then(work->batch);
  else
    client.resume(what, [&client, what, work] { make_on(client, what, work); });
}

} // namespace

batch_ptr objects_of(const opened_space& in, std::span<const digest> chunks,
                     const std::optional<digest>& before, const transfer_scope& scope, uint16_t rank) {
  auto batch = begin_batch(in, scope);
  add_chunks(*batch, in, chunks, before, scope.pools, rank, scope.range.first,
             scope.range.first + scope.range.count);
  return batch;
}

void with_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then) {
  if (of.scope.range.count * of.scope.pools.size() <= slice_objects) {
    then(objects_of(*of.in, *of.chunks, of.before, of.scope, of.rank));
    return;
  }
  auto work = std::make_shared<making>();
  work->batch = begin_batch(*of.in, of.scope);
  work->next = of.scope.range.first;
  work->of = std::move(of);
  work->body = body ? std::move(body) : client.channel().hold();
  work->then = std::move(then);
  make_on(client, what, work);
}

namespace {

hold_ptr part_of(const hold_ptr& held, const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  const auto& [range, pools] = scope;
  chunk_layout layout(from->in->spec);
  std::vector<object_place> places;
  places.reserve(range.count * pools.size());
  for (size_t c = range.first; c < range.first + range.count; ++c)
    for (size_t pool : pools)
      places.push_back(held->places()[c * layout.objects_per_chunk() + layout.object_of(pool, rank)]);
  return hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)),
                  [from](object_hold* view) { delete view; });
}

} // namespace

tier_holds leased_part(const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  tier_holds part;
  for (const tier_hold& one : from->held)
    part.push_back({one.tier, part_of(one.held, from, scope, rank)});
  return part;
}

result<std::shared_ptr<const scatter_gather>> runs_of(const protocol::run_vector& runs,
                                                      const flatbuffers::Vector<uint32_t>* runs_per_object,
                                                      const object_batch& objects, uint64_t region_bytes) {
  std::vector<region_run> list;
  list.reserve(runs.size());
  for (const wire::Run* run : runs)
    list.push_back({run->offset(), run->bytes(), run->stride(), run->count()});
  auto made = scatter_gather::make(list, span_of(runs_per_object), objects.payload_bytes, region_bytes);
  if (!made)
    return tl::unexpected(made.error());
  return std::make_shared<const scatter_gather>(std::move(*made));
}

outside_memory outside(const std::shared_ptr<const client_region>& region) {
  return {region->data(), region->fd(), region->size(), region};
}

} // namespace terrace::actors
