// The parameters and results of libterrace's calls: plain values, no FlatBuffers.
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::client {

/// The time by which a call returns in any case. Without one the call waits for the answer or the end of the
/// connection.
using deadline = std::optional<std::chrono::steady_clock::time_point>;

/// What a wait does after a signal handler has run.
enum class on_signal : uint8_t { goes_on, returns };

inline deadline within(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

// ---- spaces ----

enum class hash_algorithm : uint8_t { sha256_cbor = 0, sha256 = 1, xxh3_128 = 2 };

enum class hit_rule : uint8_t { all_chunks = 0, trailing_chunks = 1 };

/// The order of a tensor's dimensions, slowest first (docs/protocol.md).
enum class tensor_format : uint8_t { binary = 0, kv_2ltd = 1, kv_t2d = 2, kv_2td = 3, kv_mla = 4 };

struct tensor_shape {
  tensor_format format = tensor_format::kv_2ltd;
  std::string dtype;    ///< default: dtype of the space
  uint32_t kv_size = 2; ///< 2, or 1 if K and V are one; `kv_mla` and `binary`: 1
  uint32_t layers = 1;
  uint32_t hidden = 0; ///< elements per token in one layer of K or V; `binary`: per layer
  uint32_t first_layer = 0;
};

/// One kind of state in a space: attention KV, Mamba states, a sliding window.
struct pool_spec {
  std::string name = "kv";
  uint64_t object_bytes = 0; ///< bytes of one chunk of this pool on one rank; 0 if given by `tensors`
  hit_rule rule = hit_rule::all_chunks;
  uint32_t trailing = 1;             ///< number of chunks, for trailing_chunks
  bool replicated = false;           ///< stored once for all ranks
  std::vector<tensor_shape> tensors; ///< tensors of an object
  uint32_t layer_groups = 1;         ///< with tensors: a pool "NAME.0", "NAME.1", ... per group of layers
};

/// Defaults for the requests of this connection in a space. A call's deadline takes precedence over `time`.
struct request_defaults {
  uint32_t tiers = 0;                ///< as in lookup_request
  uint8_t priority = 128;            ///< as in request_options, like the rest
  std::chrono::milliseconds time{0}; ///< how long a request may take; 0: as configured
  bool no_load = false;
  bool no_store = false;
  friend bool operator==(const request_defaults&, const request_defaults&) = default;
};

/// Everything that must match for KV to be interchangeable. Clients whose specs differ in any field but
/// `rank` share nothing.
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
  uint32_t rank = 0; ///< rank of this connection, not part of the space
  /// The speed at which this client computes KV. Results then leave out chunks that the client computes
  /// sooner than the daemon delivers them (`recompute_chunks`). Not part of the space. 0: not declared.
  uint32_t prefill_tokens_per_s = 0;
  request_defaults defaults; ///< not part of the space either
};

/// An open space. Can be copied freely; belongs to the connection that opened it and survives its reconnects.
struct space {
  uint32_t slot = 0;
  digest fingerprint; ///< digest of all fields of the spec, as computed by the daemon
};

/// A tensor of an object: its offset, size and layers.
struct tensor_place {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t first_layer = 0;
  uint32_t layers = 0;
};

/// A pool of an open space; its index in the list is its number in requests.
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

/// The chunks of a request: either tokens or digests. A view: the data is read during the call only.
struct prefix {
  static constexpr uint32_t tokens_max = 2'097'152; ///< with `parent_tokens`
  static constexpr uint32_t chunks_max = 65'536;    ///< in a request

  std::span<const uint32_t> tokens; ///< the whole prompt, or the tokens after `parent`
  std::span<const uint8_t> parent;  ///< digest that the tokens continue
  uint32_t parent_tokens = 0;       ///< number of tokens that `parent` covers
  std::span<const uint8_t> digests; ///< back to back, `digest_width` bytes each
  uint8_t digest_width = digest::max_size;
  digest_unit unit = digest_unit::chunk;
  std::span<const uint32_t> end_offsets; ///< end of each digest in tokens, if not regular
  std::string_view lora; ///< allowed beside digests only with sha256_cbor and chunks of one hash block
  std::string_view salt; ///< hashed into the first block only; allowed beside digests as `lora` is
  std::span<const item> items;
  std::span<const std::string_view> tags;
  /// 16 bytes: the session to continue at `parent_tokens`; see session::continued.
  std::span<const uint8_t> session;
  /// The tokens after the last whole chunk form a chunk, too, the last one (docs/sessions.md).
  bool tail = false;

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
  /// In a session counted from the start of the prompt, otherwise from the first chunk sent.
  uint32_t first = 0;
  uint32_t count = 0; ///< 0: all from `first`
};

/// Whether the caller may still read what `read_lease` returned for the lease before.
enum class earlier_places : uint8_t { kept, given_up };

// ---- requests ----

/// Options of any request on objects.
struct request_options {
  std::optional<uint8_t> priority; ///< smaller is more urgent; absent: the space's default
  std::string_view trace;          ///< shown in the daemon's log and in error texts

  /// The caller's number for the inference request, unique among the clients of the trust group. Lookups,
  /// loads and stores with equal numbers count as one use of the prefix, and `connection::end_inference`
  /// reports its end. 0: not given.
  uint64_t inference = 0;
  uint64_t session = 0; ///< hint: identifies the conversation, equal for all its turns. 0: not given
  uint32_t turn = 0;    ///< hint: number of the turn, from 1. 0: not given
  /// Time by a clock of the caller; used by daemons with policy.clock = "told".
  std::optional<std::chrono::nanoseconds> time;
  std::optional<uint32_t>
      prefill_tokens_per_s; ///< for this request, instead of the space's; 0: everything found is returned
  /// True: nothing is found (lookups; loads and prefetches by prefix). Absent: the space's default.
  std::optional<bool> no_load;
  /// True: nothing is stored (store, reserve), which is no error. Absent: the space's default.
  std::optional<bool> no_store;
  friend bool operator==(const request_options&, const request_options&) = default;
};

enum class finish_reason : uint8_t { unknown, stop, length, tool_call, aborted };

/// The end of an inference request, with hints on when its prefix is needed again.
struct inference_end {
  uint64_t inference = 0;
  std::optional<uint32_t> output_tokens;
  finish_reason reason = finish_reason::unknown;
  bool session_closed = false;                         ///< no further turn follows in this conversation
  std::optional<std::chrono::milliseconds> think_time; ///< expected time until the next turn
  std::optional<std::chrono::nanoseconds> time;        ///< as in request_options
};

/// The number of removed objects: an object counts once per tier.
struct clear_result {
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

struct lookup_request {
  space in;
  prefix what;
  bool lease = false;
  uint32_t tiers = 0; ///< bit n: tier_kind n may be searched; 0: the space's default, or all
  request_options options;
  std::optional<lookup_id> id; ///< id with which others of the trust group may await or cancel it
  bool digests = false;        ///< return the digests of the requested chunks, to compare hashing
  bool logits = false;         ///< with a tail: also looks for the logits of this exact prompt (save_prompt)
};

/// `count` pieces of `bytes` each; piece i is at offset `offset + i * stride` in the region.
struct run {
  /// Value of `offset` of a single piece in loads: that many bytes of the object are not copied, such as
  /// those of tokens that the engine already has.
  static constexpr uint64_t skipped = UINT64_MAX;

  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 1;
};

class arrivals;
class layer_ring;
class registered_region;

/// A counter in the memory of a `layer_ring`, and the value that it is raised to.
struct layer_counter {
  uint64_t offset = 0; ///< offset in the memory
  uint32_t value = 0;  ///< compared modulo 2^32
};

/// A slot of a `layer_ring`, for one load into memory of a device. A value; valid until the slot is begun again.
struct layered_load {
  layer_ring* in = nullptr;
  uint32_t slot = 0;
  uint32_t value = 0; ///< value of all its counters

  /// The counter that is written when all chunks of the load's pool number `layer` have arrived, or when the
  /// load has ended without them. A wait may be queued before the load is submitted: until then the counter
  /// has an older value.
  layer_counter layer(uint32_t layer) const;
  /// The counter that the waiter writes behind its last wait.
  layer_counter passed() const;
};

/// Runs follow the objects, by chunk, then pool; objects are divided among their runs in order.
struct load_request {
  space in;
  prefix what;                   ///< either the prefix,
  std::optional<lease_id> lease; ///< or a lease
  chunk_range range;
  const registered_region* region = nullptr;
  std::span<const run> runs;
  std::span<const uint32_t> runs_per_object; ///< empty: one run per object
  std::span<const uint8_t> pools;            ///< numbers of the requested pools, ascending; empty: all
  request_options options;
  const arrivals* progress = nullptr; ///< one counter for each requested pool
  uint32_t tiers = 0;                 ///< for a load by prefix, as in lookup_request
  /// For a region in device memory: the device writes a generation for each requested pool (layer_ring.hpp).
  std::optional<layered_load> layers{};
};

/// When an incomplete prefetch is answered: when it is cancelled or its time is over. With `wait` it is
/// answered only once everything that is expected is in host memory, or with an error.
enum class stop_rule : uint8_t {
  best_effort = 0, ///< does not wait for memory either
  wait = 1,
  until_deadline = 2, ///< after `time`
};

/// Exactly one of `what`, `lease` and `lookup` is set.
struct prefetch_request {
  space in; ///< space of `what`
  prefix what;
  std::optional<lease_id> lease;
  std::optional<lookup_id> lookup; ///< a lookup that takes a lease, also if it is not answered yet
  stop_rule rule = stop_rule::best_effort;
  std::chrono::milliseconds time{0}; ///< time for `until_deadline`
  request_options options;
  const arrivals* progress = nullptr; ///< one counter
  uint32_t tiers = 0;                 ///< for a prefetch by prefix, as in lookup_request
  tier_kind to = tier_kind::host;     ///< may also be `gpu`
};

/// Chunks that this client is going to store, for others who follow the name.
struct announcement {
  space in;
  prefix what;
  lookup_id name; ///< unique among the announcements of the trust group in progress
  request_options options;
};

/// How far an announcement has got.
struct announced_chunks {
  uint32_t announced = 0;
  uint32_t found = 0; ///< leading ones that are present
  bool ended = false; ///< no more of them will come
};

/// A store waits until this 32-bit counter, in a region that is a memfd, has reached `value`, compared modulo
/// 2^32.
struct generation {
  const registered_region* in = nullptr;
  uint64_t offset = 0; ///< offset in the region: a multiple of 4, in the first 256 KiB
  uint32_t value = 0;
};

/// Memory of a device, for `register_device_region`. The memory and the descriptor stay the caller's.
struct device_allocation {
  std::string device; ///< the UUID of the GPU, as nvidia-smi writes it, or "host"
  uint64_t bytes = 0;
  /// Descriptor of physical memory (VMM), or a sealed memfd for "host"; -1: `handle` is used.
  int descriptor = -1;
  std::array<uint8_t, 64> handle{}; ///< handle of CUDA IPC, a cudaIpcMemHandle_t
};

struct store_request {
  space in;
  prefix what;
  chunk_range range; ///< chunks of the prefix in the runs
  const registered_region* region = nullptr;
  std::span<const run> runs;
  std::span<const uint32_t> runs_per_object; ///< empty: one run per object
  std::span<const uint8_t> pools;            ///< as in load_request
  request_options options;
  /// For a region in device memory: the daemon reads none of it before the counter is reached. The writer of
  /// the counter then rings the connection's bell. The bell must have been asked for (connection::bell),
  /// unless the counter has been reached when the request is sent.
  std::optional<generation> after{};
};

struct reserve_request {
  space in;
  prefix what;
  chunk_range range;
  std::span<const uint8_t> pools; ///< as in load_request
  request_options options;
};

// ---- results ----

/// The object that ended a prefix early.
struct missing_object {
  uint32_t chunk = 0; ///< chunk of the prefix or the lease, from 0
  uint16_t pool = 0;
  uint16_t rank = 0;
  bool damaged = false; ///< the object was found but could not be read, or its bytes were wrong
};

struct load_result {
  uint32_t requested_chunks = 0;
  uint32_t delivered_chunks = 0; ///< the contiguous prefix that was delivered
  uint64_t delivered_tokens = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> bytes_by_tier;   ///< indexed by tier_kind; may be shorter
  uint64_t first_token = 0;              ///< position in the prompt at which the first loaded chunk begins
  std::optional<missing_object> missing; ///< the object that ended it early
  /// Further chunks that are present but faster to compute (space_spec).
  uint32_t recompute_chunks = 0;
};

/// Why a prefetch ended.
enum class prefetch_end : uint8_t {
  complete,
  cancelled,
  deadline_passed,
  no_room, ///< host memory has no room
  lost,    ///< an object could not be read, or was evicted or cleared meanwhile
};

struct prefetch_share {
  uint32_t found = 0; ///< chunks
  uint32_t expected = 0;
  uint32_t delivered = 0;
};

struct prefetch_result {
  uint32_t requested_chunks = 0;
  uint32_t found_chunks = 0;    ///< leading chunks, in any tier
  uint32_t expected_chunks = 0; ///< the part of `found_chunks` that host memory has room for
  /// The part of `expected_chunks` that is in host memory, a contiguous prefix.
  uint32_t delivered_chunks = 0;
  uint32_t chunk_tokens = 0;         ///< tokens per chunk
  std::vector<prefetch_share> tiers; ///< indexed by the tier_kind in which a chunk was found; may be shorter
  prefetch_end end = prefetch_end::complete;
  uint64_t first_token = 0;              ///< position in the prompt at which the first chunk begins
  std::optional<missing_object> missing; ///< the object that was lost and ended it
  /// Further chunks that are present but faster to compute (space_spec).
  uint32_t recompute_chunks = 0;

  uint64_t delivered_tokens() const { return uint64_t{delivered_chunks} * chunk_tokens; }
};

struct store_result {
  uint32_t stored_chunks = 0;
  uint32_t present_chunks = 0; ///< already present; nothing was copied
  uint64_t bytes = 0;
};

/// The daemon's answer in the handshake.
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

/// The position at which a subscription continues. A new one begins with what is there.
struct event_cursor {
  uint64_t sequence = 0;
  uint8_t tier = 255;
  uint32_t slot = 0;
};
enum class event_kind : uint8_t { admit = 1, evict = 2, demote = 3, clear = 4 };
struct event {
  uint64_t sequence = 0;
  event_kind what{};
  tier_kind tier = tier_kind::none;
  uint32_t space = 0; ///< number of the space, as in `status`
  uint16_t pool = 0;
  uint16_t rank = 0;
  digest chunk;
  /// Number of objects, this one included, that a prefix needs of the chunk. 0: not every chunk needs this
  /// object, or nobody has opened the space since the daemon started; once somebody does, the subscription
  /// ends with `gone`.
  uint32_t chunk_objects = 0;
};
struct event_part {
  std::vector<event> events;
  bool snapshot = false; ///< the events tell what is there
  event_cursor next;
  uint64_t last = 0; ///< number of the last event that exists
};

} // namespace terrace::client
