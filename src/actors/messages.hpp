// The values that messages between actors hold. What a tier is asked and answers stands in the tier room, one conversation
// a file; here is what only actors say to each other.
#pragma once

#include "base/error.hpp"
#include "memory/allocator.hpp"
#include "tier/acquire.hpp"
#include "tier/allocate.hpp"
#include "tier/await.hpp"
#include "tier/clear.hpp"
#include "tier/confirm.hpp"
#include "tier/object_batch.hpp"
#include "tier/object_hold.hpp"
#include "tier/object_notices.hpp"
#include "tier/policy_notes.hpp"
#include "tier/probe.hpp"
#include "tier/publish.hpp"
#include "tier/request_context.hpp"
#include "tier/room.hpp"
#include "tier/tier_report.hpp"
#include "tier/victims.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

/// Keeps something alive until a message, and whatever it started, is done.
using keep_alive = std::shared_ptr<const void>;

/// A request ended early: whatever waits for it is answered now.
struct sweep_notice {};

// ---- tier and allocator ----

struct usage_request {};
struct usage_answer {
  error failure;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free, and not kept free ahead of need: a store of so much makes nobody leave
  uint64_t waiting = 0;
  std::string allocator;
};

// ---- copier ----

/// Memory outside the arenas: a client's region or a connection's staging memory.
struct outside_memory {
  std::byte* data = nullptr; ///< null: not mapped, so bytes go through `fd`
  int fd = -1;
  uint64_t bytes = 0;
  keep_alive owner;
};
struct copy_piece {
  std::byte* inside = nullptr;
  uint64_t outside_offset = 0;
  uint64_t bytes = 0;
};
enum class copy_direction : uint8_t { into_arena, out_of_arena };
/// Pieces in order; ends early with `cancelled` when the context ended, with `gone` when the outside memory
/// shrank.
struct copy_request {
  copy_direction direction = copy_direction::into_arena;
  outside_memory outside;
  std::vector<copy_piece> pieces;
  /// Into the arena, where checksums of payloads are wanted: how many pieces there are up to the end of each object. The
  /// pieces of an object are its payload in order. Empty: none is wanted.
  std::vector<size_t> object_ends;
  context_ptr context;
  std::vector<keep_alive> owners; ///< holds and reservations of every byte of the arena that is touched
};
struct copy_answer {
  error failure;
  size_t pieces_done = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> checksums; ///< parallel to `object_ends`, unless it failed
};

} // namespace terrace::actors
