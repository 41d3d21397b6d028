// What a replay needs of a cache; the daemon is behind it in production, a map in tests.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "policy/eviction_types.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace::cli {

/// What a client says of an inference request as it begins.
struct inference_facts {
  uint64_t session = 0;            ///< 0: not told
  uint32_t turn = 0;               ///< 0: not told
  std::chrono::nanoseconds time{}; ///< by the trace's clock
};

/// And as it ends.
struct inference_outcome {
  uint64_t output_tokens = 0;
  finish_reason reason = finish_reason::unknown;
  bool session_closed = false;
  std::optional<std::chrono::milliseconds> think_time;
  std::chrono::nanoseconds time{};
};

/// One client of a cache: a connection, a region. Belongs to one thread at a time. Objects have one size, the target's.
class replay_target {
 public:
  virtual ~replay_target() = default;

  /// Loads write its beginning, stores read it; object i of a request lies at i * object_bytes().
  virtual std::span<std::byte> buffer() = 0;
  virtual size_t object_bytes() const = 0;

  /// An inference request begins: what is asked until the next one begins belongs to it. Returns its number. Caches
  /// without such a notion ignore it.
  virtual uint64_t begin_inference(const inference_facts&) { return 0; }
  /// It has answered.
  virtual result<void> end_inference(uint64_t inference, const inference_outcome&) {
    (void) inference;
    return {};
  }

  /// The fastest tier of each leading chunk that is present. They stay until release() or the next lookup.
  virtual result<std::vector<tier_kind>> lookup(std::span<const digest> chunks) = 0;

  /// Brings `count` of the chunks that were found, from `first` on, into the buffer. Gives how many came: a prefix.
  virtual result<size_t> load(size_t first, size_t count) = 0;

  struct stored {
    size_t written = 0;
    size_t present = 0; ///< were there already
  };
  /// The last `count` of `prefix` are in the buffer.
  virtual result<stored> store(std::span<const digest> prefix, size_t count) = 0;

  virtual void release() = 0;

  /// False once the cache is lost for good: every call would fail.
  virtual bool alive() const = 0;
};

} // namespace terrace::cli
