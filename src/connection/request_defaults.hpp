// What a client declares for a space when it opens it: the terms of all its requests there that say nothing else.
#pragma once

#include <cstdint>

namespace terrace {

struct request_defaults {
  uint32_t tiers = 0;                ///< bit n: tier_kind n may be searched; 0: all
  uint8_t priority = 128;            ///< smaller is more urgent
  uint32_t deadline_ms = 0;          ///< 0: connection.request_deadline
  bool no_load = false;              ///< nothing is found for it
  bool no_store = false;             ///< nothing is stored for it
  uint32_t prefill_tokens_per_s = 0; ///< at which it computes KV; 0: it does not say
};

/// As a set of tiers to search.
constexpr uint32_t no_tier = uint32_t{1} << 31;

} // namespace terrace
