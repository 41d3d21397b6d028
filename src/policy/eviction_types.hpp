// The values that are said to an eviction_tracker and by it.
#pragma once

#include "base/object_key.hpp"
#include "policy/access_clock.hpp"

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
  entry_key
      above; ///< the next ancestor that is resident in the tier: it may leave only when this one does; empty: none
};

/// A number of the owner's choice for each tier, below `tiers_max`.
using tier_number = uint8_t;
constexpr tier_number tiers_max = 4;

/// Names a request between its begin and its end. 0: none.
using request_number = uint64_t;

/// What a client may tell at the start of a request. All optional.
struct request_hints {
  uint64_t session = 0; ///< a name of the conversation, the same for all its turns; 0: not told
  uint32_t turn = 0;    ///< from 1; 0: not told
  uint32_t space = 0;   ///< a number of the space that the chain is of, from 1; 0: not told
  uint8_t priority = 0; ///< higher stays longer under `priority`; at most 7
};

enum class finish_reason : uint8_t { unknown, stop, length, tool_call, aborted };

/// What is known when a request ends. All optional.
struct request_outcome {
  std::optional<uint32_t> output_tokens{};
  finish_reason reason = finish_reason::unknown; ///< after a tool call the session returns soon
  bool session_closed = false;                   ///< nothing follows in this session
  std::optional<uint64_t> think_time_ns{};       ///< expected until the next turn
};

/// Who shall leave, and who is spared.
struct victim_query {
  uint64_t bytes = 0;
  request_number spared = 0; ///< entries that this request used last go only when nothing else may
  bool spare_present =
      false; ///< those that were used at this moment do not go at all, for callers that know no requests
};

enum class admission_rule : uint8_t {
  always,
  seen_twice,   ///< the chunk was asked for by two requests at least, or continues one that the tier has
  beats_victim, ///< where something must leave for it, the tier's policy would rather lose its own next victim
};

} // namespace terrace
