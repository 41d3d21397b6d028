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

/// All kinds of tiers, fastest first.
inline constexpr std::array all_tiers{tier_kind::gpu, tier_kind::host, tier_kind::disk, tier_kind::remote};
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
    default: return "a tier";
  }
}

} // namespace terrace
