// Writes objects of a tier to the tiers below: victims of eviction before they are evicted, what leaves with its segment or
// at the end, and what was used for the second time.
//
// Objects are written from their own extents, so this needs no memory, and nothing that waits for memory is waited for
// (decision 045). Part of the tier's actor.
#pragma once

#include "actors/tier/tier_shell.hpp"

#include <functional>

namespace terrace::actors {

/// A tier has joined below this one.
void on_tier_joined(tier_pointer self, const tier_joined_notice& notice);

/// The victims of the round go to the tiers below that get what is evicted; to those that get what is used for the second
/// time, the victims that were. False: there are none, or these have all of them: nothing has to be waited for. Otherwise
/// `over` is called when they have been written, or cannot be.
bool bring_victims_down(tier_pointer self, std::function<void()> over);

/// What was used for the second time, and what is to leave with its segment. Call after every change.
void bring_down_due(tier_pointer self);

/// The hold of a batch has ended.
void on_written(tier_pointer self, const written_notice& notice);

/// Writes everything that tiers below lack which get what is evicted.
caf::result<write_down_answer> on_write_down(tier_pointer self, const write_down_request& request);

} // namespace terrace::actors
