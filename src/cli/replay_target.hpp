// The interface of a cache for a replay: the daemon in production, a map in tests.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/eviction_types.hpp"
#include "base/ids.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace::cli {

/// Facts that a client reports at the start of an inference request.
struct inference_facts {
  uint64_t session = 0;            ///< 0: not given
  uint32_t turn = 0;               ///< 0: not given
  std::chrono::nanoseconds time{}; ///< time of the trace's clock
};

/// Facts that a client reports at the end of an inference request.
struct inference_outcome {
  uint64_t output_tokens = 0;
  finish_reason reason = finish_reason::unknown;
  bool session_closed = false;
  std::optional<std::chrono::milliseconds> think_time;
  std::chrono::nanoseconds time{};
};

/// Results of prefetches, in chunks.
struct prefetched {
  uint64_t requests = 0;
  uint64_t expected = 0;  ///< found chunks that the fastest tier has room for
  uint64_t delivered = 0; ///< the part of `expected` that has arrived
  uint64_t failed = 0;    ///< failed requests
};

/// One client of a cache: a connection and a region. Used by one thread at a time. All objects have the
/// target's object size.
class replay_target {
 public:
  virtual ~replay_target() = default;

  /// Loads write to its start, stores read from it; object i of a request is at i * object_bytes().
  virtual std::span<std::byte> buffer() = 0;
  virtual size_t object_bytes() const = 0;

  /// Begins an inference request: everything until the next one belongs to it. Returns its number. Caches
  /// without this notion ignore it.
  virtual uint64_t begin_inference(const inference_facts&) { return 0; }
  /// Ends an inference request.
  virtual result<void> end_inference(uint64_t inference, const inference_outcome&) {
    (void) inference;
    return {};
  }

  /// True: the target names the chunks of its requests by their tokens, which it gets from `begin_prompt`.
  virtual bool wants_tokens() const { return false; }
  /// The next requests concern a prompt of this conversation; `tokens`: those of its chunks.
  virtual void begin_prompt(uint64_t conversation, std::vector<uint32_t> tokens) {
    (void) conversation;
    (void) tokens;
  }
  virtual uint64_t sent_tokens() const { return 0; } ///< tokens sent by all requests so far

  /// Returns the fastest tier of each leading chunk that is present. The chunks stay until release() or the
  /// next lookup.
  virtual result<std::vector<tier_kind>> lookup(std::span<const digest> chunks) = 0;

  /// After a lookup: further present chunks that are faster to compute.
  virtual uint64_t recompute_chunks() const { return 0; }
  /// After a lookup: present chunks that came from a remote store to host memory for it.
  virtual uint64_t brought_chunks() const { return 0; }

  /// Loads `count` of the found chunks, starting at `first`, into the buffer. Returns the number delivered: a
  /// prefix.
  virtual result<size_t> load(size_t first, size_t count) = 0;

  /// Begins to bring the present ones of `chunks` into the fastest tier. Caches without this notion ignore
  /// it.
  virtual result<void> prefetch(std::span<const digest>) { return {}; }
  /// Returns the prefetches that have ended since the last call. `all`: waits for the rest.
  virtual prefetched take_prefetched(bool all) {
    (void) all;
    return {};
  }

  struct stored {
    size_t written = 0;
    size_t present = 0; ///< chunks already present
  };
  /// Stores the last `count` of `prefix`, which are in the buffer.
  virtual result<stored> store(std::span<const digest> prefix, size_t count) = 0;

  virtual void release() = 0;

  /// False once the cache is lost: every call would fail.
  virtual bool alive() const = 0;
  /// True: the cache comes back, and everything is a miss until then.
  virtual bool fails_open() const { return false; }
};

} // namespace terrace::cli
