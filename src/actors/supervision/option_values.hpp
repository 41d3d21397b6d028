// The values that options may have: the names in the registries behind them. Used to validate settings.
#pragma once

#include "memory/allocator.hpp"
#include "policy/eviction_policy.hpp"
#include "tier/objects/demotion_mode.hpp"

#include <span>
#include <string_view>

namespace terrace::option_values {

inline std::span<const std::string_view> allocators() { return allocator_names(); }
inline std::span<const std::string_view> policies() { return eviction_policy_names(); }
inline std::span<const std::string_view> demotions() { return demotion_modes; }

} // namespace terrace::option_values
