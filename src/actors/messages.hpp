// The contents of messages between actors. The conversation of a tier is defined in tier/messages.hpp.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/policy/policy_notes.hpp"
#include "transfer/copy_messages.hpp"

namespace terrace::actors {

/// A request ended early: the receiver answers whatever waits for it now.
struct sweep_notice {};

/// A tier sends this to itself for the next part of a clear.
struct clear_turns;
struct clear_turn_notice {
  std::shared_ptr<clear_turns> work;
};

/// A tier sends this to itself for the next part of a notice about many objects.
struct next_part_notice {};

/// A preparer sends this to itself: blocking work, one part at a time.
struct open_disk_notice {};
struct commit_piece_notice {};

} // namespace terrace::actors
