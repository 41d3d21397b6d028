#include "bench/engine/terrace_cache.hpp"

#include "bench/harness.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace terrace::bench {

namespace {

constexpr double patience_seconds = 60;

client::space_spec space_of_model(const std::string& name, const model_shape& shape, size_t block_bytes) {
  client::space_spec spec;
  spec.model = name;
  spec.revision = std::to_string(shape.seed);
  spec.dtype = "f32";
  spec.layout = "blocks of " + std::to_string(shape.layers) + " layers";
  spec.chunk_tokens = block_tokens;
  spec.hash_block_tokens = block_tokens;
  spec.pools = {{.name = "kv", .object_bytes = block_bytes}};
  return spec;
}

std::span<const uint32_t> whole_blocks(std::span<const uint32_t> tokens) {
  return tokens.first(tokens.size() / block_tokens * block_tokens);
}

} // namespace

terrace_cache::terrace_cache(const std::string& socket, const std::string& name, const model_shape& shape,
                             const paged_kv& kv)
    : kv_(kv),
      daemon_(must(client::connection::connect({.path = socket, .name = "reference-engine"}), "connecting")),
      space_(must(daemon_.open_space(space_of_model(name, shape, kv.block_bytes())), "opening a space")),
      region_(kv.register_at(daemon_)) {}

terrace_cache::~terrace_cache() { must(region_.unregister(), "unregistering the region"); }

restored terrace_cache::restore(std::span<const uint32_t> tokens, std::span<const uint32_t> table) {
  bytes_by_tier_.clear();
  client::lookup_request request;
  request.in = space_;
  request.what = client::prefix::of_tokens(tokens);
  request.what.tail = tokens.size() % block_tokens != 0;
  request.logits = request.what.tail;
  request.lease = true;
  auto hit = must(daemon_.lookup(request), "looking up");
  // Without its logits, the last token is computed in any case.
  const bool whole = !hit.logits.empty();
  auto blocks =
      static_cast<uint32_t>(whole ? paged_kv::blocks_for(tokens.size())
                                  : std::min<size_t>(hit.found_chunks, (tokens.size() - 1) / block_tokens));
  if (blocks == 0)
    return {};
  auto runs = runs_of(table, blocks);
  client::load_request load;
  load.in = space_;
  load.lease = hit.held.id();
  load.range = {.first = 0, .count = blocks};
  load.region = &region_;
  load.runs = runs;
  auto loaded = must(daemon_.load(load), "loading");
  bytes_by_tier_.assign(loaded.bytes_by_tier.begin(), loaded.bytes_by_tier.end());
  restored result;
  if (whole && loaded.delivered_chunks == blocks) {
    result.tokens = tokens.size();
    result.logits.resize(hit.logits.size() / sizeof(float));
    std::memcpy(result.logits.data(), hit.logits.data(), hit.logits.size());
  } else {
    result.tokens =
        std::min<size_t>(loaded.delivered_chunks, (tokens.size() - 1) / block_tokens) * block_tokens;
  }
  tokens_restored_ += result.tokens;
  return result;
}

void terrace_cache::keep(std::span<const uint32_t> tokens, std::span<const uint32_t> table,
                         std::span<const float> logits) {
  store(tokens, table);
  if (tokens.size() % block_tokens == 0)
    return; // logits are kept only for prompts with a partial block
  client::prompt_to_save request;
  request.in = space_;
  request.what = client::prefix::of_tokens(tokens);
  request.what.tail = true;
  request.logits = {reinterpret_cast<const uint8_t*>(logits.data()), logits.size_bytes()};
  must(daemon_.save_prompt(request), "saving a prompt");
}

void terrace_cache::keep_blocks(std::span<const uint32_t> tokens, std::span<const uint32_t> table) {
  if (auto whole = whole_blocks(tokens); !whole.empty())
    store(whole, table);
}

void terrace_cache::move_to(tier_kind tier, std::span<const uint32_t> tokens) {
  client::prompt_request request{.in = space_, .what = client::prefix::of_tokens(whole_blocks(tokens))};
  // A GPU tier begins when memory is registered, and objects being written are held, so this retries.
  for (double begin = seconds_now();; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    auto moved = must(daemon_.admin().move(request, tier), "moving");
    if (moved.moved.chunks + moved.present.chunks == moved.requested_chunks && moved.held.chunks == 0)
      return;
    if (seconds_now() - begin > patience_seconds)
      give_up("of " + std::to_string(moved.requested_chunks) + " blocks " +
              std::to_string(moved.moved.chunks) + " were moved, " + std::to_string(moved.present.chunks) +
              " were there, and " + std::to_string(moved.held.chunks) + " are held");
  }
}

void terrace_cache::evict_from(tier_kind tier, std::span<const uint32_t> tokens) {
  must(daemon_.admin().evict({.in = space_,
                              .what = client::prefix::of_tokens(whole_blocks(tokens)),
                              .tiers = 1U << static_cast<unsigned>(tier)}),
       "evicting");
}

void terrace_cache::store(std::span<const uint32_t> tokens, std::span<const uint32_t> table) {
  auto runs = runs_of(table, paged_kv::blocks_for(tokens.size()));
  client::store_request request;
  request.in = space_;
  request.what = client::prefix::of_tokens(tokens);
  request.what.tail = tokens.size() % block_tokens != 0;
  request.region = &region_;
  request.runs = runs;
  must(daemon_.store(request), "storing");
}

std::vector<client::run> terrace_cache::runs_of(std::span<const uint32_t> table, size_t blocks) const {
  std::vector<client::run> runs;
  for (uint32_t block : table.first(blocks))
    runs.push_back({.offset = block * kv_.block_bytes(), .bytes = kv_.block_bytes()});
  return runs;
}

} // namespace terrace::bench
