// The contents of messages between actors. The conversation of a tier is defined in the room tier, one header
// per request.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "tier/objects/await.hpp"
#include "tier/objects/clear.hpp"
#include "tier/objects/confirm.hpp"
#include "tier/objects/count_objects.hpp"
#include "tier/objects/demote.hpp"
#include "tier/objects/list_objects.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_notices.hpp"
#include "tier/objects/publish.hpp"
#include "tier/objects/remove.hpp"
#include "tier/policy/policy_notes.hpp"
#include "tier/search/probe.hpp"
#include "tier/space/acquire.hpp"
#include "tier/space/allocate.hpp"
#include "tier/space/room.hpp"
#include "tier/space/usage.hpp"
#include "tier/space/victims.hpp"
#include "tier/tier_report.hpp"
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
