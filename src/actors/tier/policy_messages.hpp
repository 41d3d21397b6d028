// What is asked of a trust group's policies, and told to their shadows.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "index/prefix_resolver.hpp"
#include "policy/shadow_cache.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace::actors {

/// Another policy for a tier, from now on. Its residents stay. `not_found`: the group has no such tier.
struct set_policy_request {
  tier_kind tier = tier_kind::none;
  std::string policy;
};
struct set_policy_answer {
  error failure;
  std::string before;
};

struct policies_request {};
struct policies_report {
  struct tier {
    tier_kind kind = tier_kind::none;
    std::string policy;
    uint64_t residents = 0;
  };
  error failure;
  std::vector<tier> tiers;
  uint64_t tracked = 0;
  uint64_t ghosts = 0;
  uint64_t bookkeeping_bytes = 0;
};

/// From a connection: a chain that was asked for, present or not.
struct shadow_use {
  space_ptr in;
  std::shared_ptr<const chunk_prefix> prefix;
  std::optional<uint16_t> rank; ///< absent: on all ranks
  uint64_t inference = 0;       ///< 0: not told
  request_hints hints;
  std::optional<policy_time> told; ///< by the client's clock
};
/// From a connection, when its tiers were cleared.
struct shadow_clear {
  std::optional<space_id> space; ///< absent: of all
};

struct shadow_request {};
struct shadow_report {
  struct line {
    std::string policy;
    uint64_t capacity_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t residents = 0;
    uint64_t bookkeeping_bytes = 0;
    shadow_counts counts;
  };
  error failure;
  std::vector<line> lines;
};

} // namespace terrace::actors
