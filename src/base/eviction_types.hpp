// The values that an eviction_tracker takes and returns, and what it tells its owner; how much may be written to a tier.
#pragma once

#include "base/access_clock.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace terrace {

struct entry_info {
  entry_key key;
  entry_key parent;   ///< the object of the previous chunk of the same chain; empty for the first chunk
  uint64_t bytes = 0; ///< physical bytes that the entry's eviction frees
};

struct victim {
  entry_key key;
  uint64_t bytes = 0;
  entry_key above; ///< the next ancestor resident in the tier, evictable only after this; empty: none
};

/// A number that the owner chooses for each tier, below `tiers_max`.
using tier_number = uint8_t;
constexpr tier_number tiers_max = tier_kinds;

/// Is told how long residents were not accessed. The tracker calls it synchronously.
class age_observer {
 public:
  virtual ~age_observer() = default;
  /// So many residents were accessed, `after` this time since their last access.
  virtual void reused(tier_number tier, std::chrono::milliseconds after, size_t entries) = 0;
  /// A resident was evicted at this `age`, the time since its last access.
  virtual void evicted(tier_number tier, entry_key key, std::chrono::milliseconds age) = 0;
};

/// Identifies a request from its begin to its end. 0: none.
using request_number = uint64_t;

/// Hints that a client may give at the start of a request. All are optional.
struct request_hints {
  uint64_t session = 0; ///< identifies the conversation, the same for all its turns; 0: not given
  uint32_t turn = 0;    ///< from 1; 0: not given
  uint32_t space = 0;   ///< number of the chain's space, from 1; 0: not given
  uint8_t retention =
      0; ///< 0 to 7, from the priority of the request; more stays longer under the `priority` policy
};

enum class finish_reason : uint8_t { unknown, stop, length, tool_call, aborted };

/// Facts that are known when a request ends. All fields are optional.
struct request_outcome {
  std::optional<uint32_t> output_tokens{};
  finish_reason reason = finish_reason::unknown; ///< after a tool call the session is expected to return soon
  bool session_closed = false;                   ///< no further turn follows in this session
  std::optional<uint64_t> think_time_ns{};       ///< expected time until the next turn
};

/// How many bytes to evict, and which entries to spare.
struct victim_query {
  uint64_t bytes = 0;
  request_number spared =
      0; ///< entries accessed last by this request are chosen only if nothing else is left
  bool spare_present =
      false; ///< entries accessed at this very time are not chosen; for callers without requests
};

enum class admission_rule : uint8_t {
  always,
  seen_twice,   ///< at least two requests asked for the chunk, or it continues one that is in the tier
  beats_victim, ///< if something must be evicted for it, the policy prefers to evict its own next victim
};

/// How much may be written to a tier. 0: no limit.
struct write_rates {
  uint64_t bytes_per_day = 0;
  uint64_t bytes_per_second = 0;
  bool limited() const { return bytes_per_day != 0 || bytes_per_second != 0; }
  friend bool operator==(const write_rates&, const write_rates&) = default;
};

} // namespace terrace
