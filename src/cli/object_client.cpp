#include "cli/object_client.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace terrace::cli {

outcome<std::unique_ptr<object_client>> object_client::open(client::connection daemon,
                                                            const object_client_options& options) {
  std::unique_ptr<object_client> made(new object_client(std::move(daemon)));
  client::connection& to = made->daemon_;
  made->object_bytes_ = options.space.pools.front().object_bytes;
  made->chunk_tokens_ = options.space.chunk_tokens;
  made->fail_open_ = options.fail_open;
  if (options.naming != prompt_naming::digests)
    made->prompts_.emplace(options.naming == prompt_naming::sessions);
  bool shares = to.daemon().has("mapped_arena");
  if (options.mode == load_mode::mapped && !shares)
    return bad_usage("--mode mapped: expected a group that maps its arena, but this one is isolated; "
                     "use --mode daemon");
  made->leases_ = options.lease;
  made->mapped_ = shares && options.lease && options.mode != load_mode::daemon;
  auto space = to.open_space(options.space);
  if (!space)
    return request_failed(to, "opening the space", space.error());
  made->space_ = *space;
  auto memory =
      client::region::create("terrace-cli", std::max<uint64_t>(options.region_bytes, made->object_bytes_));
  if (!memory)
    return failed("making a region", memory.error());
  if (options.commit)
    (void) memory->commit(); // if memory cannot be committed, pages come with the first access
  made->memory_ = std::move(*memory);
  auto registered = to.register_region(made->memory_);
  if (!registered)
    return request_failed(to, "registering a region", registered.error());
  made->registered_ = std::move(*registered);
  made->next_inference_ = uint64_t{std::random_device()()} << 32 | 1;
  return made;
}

std::span<std::byte> object_client::buffer() { return std::as_writable_bytes(memory_.bytes()); }

std::vector<client::run> object_client::runs(size_t first, size_t count) const {
  std::vector<client::run> all(count);
  for (size_t i = 0; i < count; ++i)
    all[i] = {
        .offset = (first + i) * object_bytes_, .bytes = object_bytes_, .stride = object_bytes_, .count = 1};
  return all;
}

uint64_t object_client::begin_inference(const inference_facts& facts) {
  options_.inference = next_inference_++;
  options_.session = facts.session;
  options_.turn = facts.turn;
  options_.time = facts.time;
  return options_.inference;
}

result<void> object_client::end_inference(uint64_t inference, const inference_outcome& outcome) {
  client::inference_end end;
  end.inference = inference;
  end.output_tokens = static_cast<uint32_t>(std::min<uint64_t>(outcome.output_tokens, UINT32_MAX));
  static_assert(static_cast<int>(finish_reason::aborted) == static_cast<int>(client::finish_reason::aborted));
  end.reason = static_cast<client::finish_reason>(outcome.reason);
  end.session_closed = outcome.session_closed;
  end.think_time = outcome.think_time;
  end.time = outcome.time;
  return daemon_.end_inference(end, until());
}

result<std::vector<tier_kind>> object_client::lookup(std::span<const digest> chunks) {
  held_.release();
  if (fail_open_ && !daemon_.alive()) {
    if (auto back = daemon_.reconnect(until()); !back)
      return tl::unexpected(back.error());
  }
  client::lookup_request request;
  request.in = space_;
  request.lease = leases_;
  request.options = options_;
  if (!prompts_)
    request.what = client::prefix::of_digests(chunks);
  auto found = prompts_ ? prompts_->lookup(daemon_, request, until()) : daemon_.lookup(request, until());
  if (!found)
    return tl::unexpected(found.error());
  held_ = std::move(found->held);
  recompute_chunks_ = found->recompute_chunks;
  brought_chunks_ = found->brought_chunks;
  if (!leases_)
    unheld_.assign(chunks.begin(), chunks.begin() + static_cast<ptrdiff_t>(found->tiers.size()));
  return std::move(found->tiers);
}

result<size_t> object_client::load(size_t first, size_t count) {
  client::chunk_range range{static_cast<uint32_t>(first), static_cast<uint32_t>(count)};
  if (mapped_) {
    std::vector<std::span<uint8_t>> into(count);
    for (size_t i = 0; i < count; ++i)
      into[i] = memory_.bytes().subspan(i * object_bytes_, object_bytes_);
    // Objects that were copied before are no longer read, so their places are given up to make room for the
    // next.
    auto bytes = daemon_.load_under_lease(held_, range, into, until(), {}, client::earlier_places::given_up);
    if (bytes)
      return *bytes / object_bytes_;
    if (bytes.error().code != errc::no_space)
      return tl::unexpected(bytes.error());
    // Leases leave no room to map more. The daemon copies instead, for which it needs none.
  }
  auto pieces = runs(0, count);
  client::load_request request;
  request.in = space_;
  if (leases_)
    request.lease = held_.id();
  else
    request.what = client::prefix::of_digests(std::span(unheld_).first(first + count));
  request.range = range;
  request.region = &registered_;
  request.runs = pieces;
  request.options = options_;
  auto loaded = daemon_.load(request, until());
  if (!loaded)
    return tl::unexpected(loaded.error());
  return loaded->delivered_chunks;
}

result<void> object_client::prefetch(std::span<const digest> chunks) {
  client::prefetch_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(chunks);
  auto begun = daemon_.async().prefetch(request);
  if (!begun)
    return tl::unexpected(begun.error());
  prefetching_.push_back(std::move(*begun));
  return {};
}

prefetched object_client::take_prefetched(bool all) {
  prefetched sum;
  std::erase_if(prefetching_, [&](auto& one) {
    if (!all && !one.ready())
      return false;
    auto done = one.wait();
    ++sum.requests;
    if (done) {
      sum.expected += done->expected_chunks;
      sum.delivered += done->delivered_chunks;
    } else {
      ++sum.failed;
    }
    return true;
  });
  return sum;
}

result<replay_target::stored> object_client::store(std::span<const digest> prefix, size_t count) {
  auto pieces = runs(0, count);
  client::store_request request;
  request.in = space_;
  request.what = prompts_
                     ? prompts_->named((prefix.size() - count) * chunk_tokens_, prefix.size() * chunk_tokens_)
                     : client::prefix::of_digests(prefix);
  request.range = {static_cast<uint32_t>(prefix.size() - count), static_cast<uint32_t>(count)};
  request.region = &registered_;
  request.runs = pieces;
  request.options = options_;
  auto answer = daemon_.store(request, until());
  if (!answer)
    return tl::unexpected(answer.error());
  return stored{answer->stored_chunks, answer->present_chunks};
}

} // namespace terrace::cli
