// Lookups without other actors: few objects, no lease, and all indexes can be read now.
#pragma once

#include "actors/lookup/lookup_actor.hpp"

#include <optional>

namespace terrace::actors {

/// Returns the answer, found in this turn. Nullopt: it takes a LOOKUP, because it is long, holds what it
/// finds, or depends on how fast the client computes, or because a tier is modifying its index; then nothing
/// has been counted. Takes up to 10 us.
std::optional<lookup_answer> look_up_at_once(const lookup_request& request);

} // namespace terrace::actors
