// Properties of tiers, so that other code names no kind of tier.
#pragma once

#include "base/ids.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace terrace {

inline constexpr tier_kind nowhere = tier_kind::none;

/// Host memory: the first tier of every trust group, through which everything passes. The processors of the machine address its
/// bytes; those of other tiers are moved there first.
inline constexpr tier_kind memory_tier = tier_kind::host;
constexpr bool faster_than_memory(tier_kind tier) { return tier < memory_tier; }
constexpr bool slower_than_memory(tier_kind tier) { return tier > memory_tier && tier != nowhere; }

/// The tier may keep its objects when the daemon ends.
constexpr bool durable(tier_kind tier) { return tier == tier_kind::disk; }

/// Stores that several machines share, in the order in which lookups ask them.
inline constexpr std::array remote_tiers{tier_kind::remote, tier_kind::remote2, tier_kind::remote3};
constexpr bool shared_by_machines(tier_kind tier) { return tier >= remote_tiers.front() && tier != nowhere; }

/// All kinds of tiers, fastest first.
inline constexpr std::array all_tiers{tier_kind::gpu,    tier_kind::host,    tier_kind::disk,
                                      tier_kind::remote, tier_kind::remote2, tier_kind::remote3};
inline constexpr size_t tier_kinds = all_tiers.size(); ///< their numbers are 0 to one less
/// The tiers whose policies and quotas an operator sets.
inline constexpr std::array governed_tiers{tier_kind::host, tier_kind::disk};

/// Returns the tier that `to_string` calls so.
constexpr std::optional<tier_kind> tier_named(std::string_view name) {
  for (tier_kind tier : all_tiers)
    if (name == to_string(tier))
      return tier;
  return std::nullopt;
}

/// In log lines and errors.
constexpr const char* long_name(tier_kind tier) {
  switch (tier) {
    case tier_kind::gpu: return "the GPU tier";
    case tier_kind::host: return "host memory";
    case tier_kind::disk: return "the disk tier";
    case tier_kind::remote: return "the remote tier";
    case tier_kind::remote2: return "the second remote tier";
    case tier_kind::remote3: return "the third remote tier";
    default: return "a tier";
  }
}

} // namespace terrace
