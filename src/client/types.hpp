// What libterrace's calls take and give: plain values, no FlatBuffers.
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"
#include "base/lookup_id.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::client {

/// When a call must be over, whatever has happened by then. None: it waits until the answer or the connection's end.
using deadline = std::optional<std::chrono::steady_clock::time_point>;

inline deadline within(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

// ---- spaces ----

enum class hash_algorithm : uint8_t { sha256_cbor = 0, sha256 = 1, xxh3_128 = 2 };

enum class hit_rule : uint8_t { all_chunks = 0, trailing_chunks = 1 };

/// The order of a tensor's dimensions, slowest first (docs/protocol.md).
enum class tensor_format : uint8_t { binary = 0, kv_2ltd = 1, kv_t2d = 2, kv_2td = 3, kv_mla = 4 };

struct tensor_shape {
  tensor_format format = tensor_format::kv_2ltd;
  std::string dtype;    ///< empty: the space's
  uint32_t kv_size = 2; ///< 2, or 1 where K and V are one; `kv_mla` and `binary`: 1
  uint32_t layers = 1;
  uint32_t hidden = 0; ///< elements of a token in one layer of K or V; `binary`: of a layer
  uint32_t first_layer = 0;
};

/// One kind of state inside a space: attention KV, Mamba states, a sliding window.
struct pool_spec {
  std::string name = "kv";
  uint64_t object_bytes = 0; ///< of one chunk of this pool on one rank; 0 where `tensors` tell it
  hit_rule rule = hit_rule::all_chunks;
  uint32_t trailing = 1;             ///< trailing_chunks: how many
  bool replicated = false;           ///< stored once for all ranks
  std::vector<tensor_shape> tensors; ///< what an object consists of
  uint32_t layer_groups = 1; ///< with tensors: a pool "NAME.0", "NAME.1", ... for each group of layers
};

/// Everything that must match for KV to be interchangeable. Clients whose specs differ in any field but `rank` share
/// nothing.
struct space_spec {
  std::string model;
  std::string revision;
  std::string dtype;
  std::string layout;
  uint32_t chunk_tokens = 256;
  uint32_t hash_block_tokens = 16;
  uint32_t world_size = 1;
  std::vector<pool_spec> pools;
  std::string salt;
  hash_algorithm algorithm = hash_algorithm::sha256_cbor;
  std::string seed;
  uint32_t rank = 0; ///< of this connection; not part of the space
};

/// An open space. Copy it freely; it belongs to the connection that opened it and survives its reconnects.
struct space {
  uint32_t slot = 0;
  digest fingerprint; ///< of all fields of the spec, as the daemon computed it
};

/// A tensor of an object: where it lies there, and which layers it has.
struct tensor_place {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t first_layer = 0;
  uint32_t layers = 0;
};

/// A pool of an open space; its place in the list is the number by which requests name it.
struct open_pool {
  std::string name;
  uint64_t object_bytes = 0;
  std::vector<tensor_place> tensors;
};

// ---- which chunks ----

/// A multimodal item of a prompt.
struct item {
  std::string_view identifier;
  uint32_t first_token = 0;
  uint32_t tokens = 0;
};

enum class digest_unit : uint8_t { chunk = 0, hash_block = 1 };

/// Which chunks a request is about: either tokens or digests. A view: what it points to is read during the call only.
struct prefix {
  std::span<const uint32_t> tokens; ///< the whole prompt, or what follows `parent`
  std::span<const uint8_t> parent;  ///< digest that the tokens continue
  uint32_t parent_tokens = 0;       ///< how many tokens it stands for
  std::span<const uint8_t> digests; ///< one behind the other, `digest_width` bytes each
  uint8_t digest_width = digest::max_size;
  digest_unit unit = digest_unit::chunk;
  std::span<const uint32_t> end_offsets; ///< of each digest in tokens, when they are not regular
  std::string_view lora;
  std::string_view salt; ///< enters the first block only
  std::span<const item> items;
  std::span<const std::string_view> tags;

  static prefix of_tokens(std::span<const uint32_t> tokens) {
    prefix p;
    p.tokens = tokens;
    return p;
  }
  static prefix of_digests(std::span<const uint8_t> digests, uint8_t width,
                           digest_unit unit = digest_unit::chunk) {
    prefix p;
    p.digests = digests;
    p.digest_width = width;
    p.unit = unit;
    return p;
  }
  static prefix of_digests(std::span<const digest> digests) {
    static_assert(sizeof(digest) == digest::max_size);
    return of_digests({reinterpret_cast<const uint8_t*>(digests.data()), digests.size_bytes()},
                      digest::max_size);
  }
};

struct chunk_range {
  uint32_t first = 0;
  uint32_t count = 0; ///< 0: all from `first`
};

/// What `read_lease` told of a lease before: whether the caller may still read it.
enum class earlier_places : uint8_t { kept, given_up };

// ---- requests ----

/// What any request about objects may carry.
struct request_options {
  uint8_t priority = 128; ///< the smaller, the more urgent
  std::string_view trace; ///< appears in the daemon's log and in error texts

  /// The caller's number of the inference request that this belongs to, unique among the daemon's clients that share a
  /// socket: lookup, loads and stores that carry the same one are one use of the prefix, and `connection::end_inference` tells
  /// its end. 0: not told.
  uint64_t inference = 0;
  uint64_t session = 0; ///< hint: a number of the conversation, the same for all its turns. 0: not told
  uint32_t turn = 0;    ///< hint: from 1. 0: not told
  /// By a clock of the caller; for daemons whose policy.clock is "told".
  std::optional<std::chrono::nanoseconds> time;
  friend bool operator==(const request_options&, const request_options&) = default;
};

enum class finish_reason : uint8_t { unknown, stop, length, tool_call, aborted };

/// How an inference request ended: hints on when its prefix is needed again.
struct inference_end {
  uint64_t inference = 0;
  std::optional<uint32_t> output_tokens;
  finish_reason reason = finish_reason::unknown;
  bool session_closed = false;                         ///< nothing follows in this conversation
  std::optional<std::chrono::milliseconds> think_time; ///< expected until the next turn
  std::optional<std::chrono::nanoseconds> time;        ///< as in request_options
};

/// What was forgotten: an object counts once for each tier that it was in.
struct clear_result {
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

struct lookup_request {
  space in;
  prefix what;
  bool lease = false;
  uint32_t tiers = 0; ///< bit n: tier_kind n may be searched; 0: all
  request_options options;
  std::optional<lookup_id> id; ///< by which others of the trust group may wait for it or cancel it
};

/// `count` pieces of `bytes` each; the i-th lies at `offset + i * stride` of the region.
struct run {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 1;
};

class registered_region;

/// Runs follow the objects, chunk by chunk, pool by pool; objects are cut into their runs in order.
struct load_request {
  space in;
  prefix what;                   ///< either the prefix,
  std::optional<lease_id> lease; ///< or a lease
  chunk_range range;
  const registered_region* region = nullptr;
  std::span<const run> runs;
  std::span<const uint32_t> runs_per_object; ///< empty: one run each
  std::span<const uint8_t> pools;            ///< numbers of the pools that are wanted, rising; empty: all
  request_options options;
};

struct store_request {
  space in;
  prefix what;
  chunk_range range; ///< chunks of the prefix that the runs hold
  const registered_region* region = nullptr;
  std::span<const run> runs;
  std::span<const uint32_t> runs_per_object; ///< empty: one run each
  std::span<const uint8_t> pools;            ///< as in load_request
  request_options options;
};

struct reserve_request {
  space in;
  prefix what;
  chunk_range range;
  std::span<const uint8_t> pools; ///< as in load_request
  request_options options;
};

// ---- results ----

struct load_result {
  uint32_t requested_chunks = 0;
  uint32_t delivered_chunks = 0; ///< the contiguous prefix that arrived
  uint64_t delivered_tokens = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> bytes_by_tier; ///< indexed by tier_kind; may be shorter
  uint64_t first_token = 0;            ///< of the prompt: where the first loaded chunk begins
};

struct store_result {
  uint32_t stored_chunks = 0;
  uint32_t present_chunks = 0; ///< were there already; nothing was copied
  uint64_t bytes = 0;
};

/// What the daemon said in the handshake.
struct daemon_info {
  uint32_t protocol_version = 0;
  std::string version;
  boot_id boot;
  connection_id connection{};
  std::string group;
  std::vector<std::string> features;
  uint32_t credit_requests = 0;
  uint64_t credit_bytes = 0;
  uint64_t frame_bytes_max = 0;

  bool has(std::string_view feature) const;
};

} // namespace terrace::client
