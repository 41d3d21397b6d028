// The contents of messages between actors. The conversation of a tier is defined in the room tier, one header
// per request.
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

/// Keeps an object alive until a message, and everything it started, is done.
using keep_alive = std::shared_ptr<const void>;

/// A request ended early: answer whatever waits for it now.
struct sweep_notice {};

// ---- tier and allocator ----

struct usage_request {};
struct usage_answer {
  error failure;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free and not kept free ahead of demand: a store of this size evicts nothing
  uint64_t waiting = 0;
  std::string allocator;
};

// ---- copier ----

/// Memory outside the arenas: a client's region or a connection's staging memory.
struct outside_memory {
  std::byte* data = nullptr; ///< null: not mapped; use `fd`
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
/// Copies the pieces in order. Ends early with `cancelled` if the context ended, with `gone` if the outside
/// memory shrank.
struct copy_request {
  copy_direction direction = copy_direction::into_arena;
  outside_memory outside;
  std::vector<copy_piece> pieces;
  /// For copies into the arena with payload checksums: the number of pieces up to the end of each object. The
  /// pieces of an object are its payload in order. Empty: no checksums.
  std::vector<size_t> object_ends;
  context_ptr context;
  std::vector<keep_alive> owners; ///< holds and reservations of all arena bytes that are accessed
};
struct copy_answer {
  error failure;
  size_t pieces_done = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> checksums; ///< parallel to `object_ends`, unless it failed
};

} // namespace terrace::actors
