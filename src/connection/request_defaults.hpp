// The defaults that a client declares when it opens a space. They apply to all its requests there that say
// nothing else.
#pragma once

#include <cstdint>

namespace terrace {

struct request_defaults {
  uint32_t tiers = 0;                ///< bit n: tier_kind n may be searched; 0: all
  uint8_t priority = 128;            ///< smaller numbers are more urgent
  uint32_t deadline_ms = 0;          ///< 0: connection.request_deadline
  bool no_load = false;              ///< lookups find nothing
  bool no_store = false;             ///< nothing is stored
  uint32_t prefill_tokens_per_s = 0; ///< speed at which the client computes KV; 0: not declared
};

/// A set of tiers to search that contains no tier.
constexpr uint32_t no_tier = uint32_t{1} << 31;

} // namespace terrace
