// Checks of a tier: its index, and the same objects at its policy and its allocator
// (tier/objects/tier_check.hpp).
#pragma once

#include "actors/tier/tier_shell.hpp"

namespace terrace::actors {

/// Checks the next objects in this turn, and answers when the policy and the allocator have.
caf::result<check_tier_answer> on_check(tier_pointer self, const check_tier_request& request);
check_held_answer on_check_held(tier_pointer self, const check_held_request& request);
void on_end_check(tier_pointer self, const end_check_notice& notice);

/// In builds that check all the time, called after turns with changes: now and then the next slice is due. A
/// difference ends the process.
void check_now_and_then(tier_pointer self);
void on_check_slice(tier_pointer self);

} // namespace terrace::actors
