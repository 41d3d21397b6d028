// Writes objects of a tier to the tiers below: victims before they are evicted, objects that leave with their
// segment or at the end, and objects used for the second time.
//
// Objects are written from their own extents, so this needs no memory and never waits for anything that waits
// for memory (decision 045). Part of the tier's actor.
#pragma once

#include "actors/tier/tier_shell.hpp"

#include <functional>

namespace terrace::actors {

/// A tier has joined below this one.
void on_tier_joined(tier_pointer self, const tier_joined_notice& notice);

/// Writes the victims of the round to the tiers below that get evicted objects. Tiers that get objects at
/// their second use are sent the victims that were used. Returns false if there are none or these tiers have
/// all of them, so that nothing has to be awaited. Otherwise calls `over` when they have been written, or
/// cannot be.
bool bring_victims_down(tier_pointer self, std::function<void()> over);

/// Writes objects used for the second time, and objects that leave with their segment. Part of
/// `after_turn`.
void bring_down_due(tier_pointer self);

/// Called when the hold of a batch has ended.
void on_written(tier_pointer self, const written_notice& notice);

/// Writes everything that the tiers below which get evicted objects lack.
caf::result<write_down_answer> on_write_down(tier_pointer self, const write_down_request& request);

} // namespace terrace::actors
