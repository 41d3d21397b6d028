// A load from window to window: what it is asked for, what it has delivered, and what it may bring into host memory.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "base/tier_properties.hpp"
#include "index/space_registry.hpp"
#include "memory/device_memory.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/search/lease_ledger.hpp"
#include "transfer/arrival_counters.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/scatter_gather.hpp"
#include "transfer/windows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

// The order of a load whose layers are awaited: pool by pool, and within each pool chunk by chunk.
//
// Pure.

struct load_subject;

/// Objects are numbered by chunk, then pool; a load in this order has them by pool, then chunk. It may begin behind some pools.
struct layer_order {
  size_t chunks = 0; ///< of each pool; 0: the objects are in the order of their numbers
  size_t pools = 1;  ///< of a chunk, by which objects are numbered
  size_t first_pool = 0;

  explicit operator bool() const { return chunks != 0; }
  /// Of the object at this place of the load.
  size_t number_of(size_t place) const {
    return chunks == 0 ? place : place % chunks * pools + first_pool + place / chunks;
  }
  size_t pool_of(size_t place) const { return first_pool + place / chunks; }
  size_t end_of_pool(size_t place) const { return (place / chunks + 1) * chunks; }
};

/// The pools from `first_pool` on of the first `chunks` chunks of a load, as a load of chunks of one object each. What the lease
/// holds of them stays held by `of`. Its generations are kept only if these are all of its chunks.
load_subject in_layer_order(const load_subject& subject, size_t first_pool, size_t chunks);

struct load_subject {
  context_ptr context; ///< ends last: a check counts what the load holds as held by a request in progress
  space_ptr space;
  batch_ptr objects;
  size_t objects_per_chunk = 1;
  tier_holds
      leased; ///< the objects that a lease holds, by tier; if none below the first, the load probes those tiers itself
  std::shared_ptr<const scatter_gather> runs; ///< null: nothing is copied, and the host objects stay held
  outside_memory target;
  std::shared_ptr<const arrival_counters> arrivals; ///< one for each object of a chunk; null: none
  device_generations
      generations{};   ///< one for each object of a chunk, for when all chunks have arrived; or none
  keep_alive held_by;  ///< the lease of the load, kept until it is done; may be null
  account_ptr account; ///< without runs: of the connection, for what stays held; may be null
  bool note_access = true;
  bool from_store = false; ///< of what was found, some has to be read from a store that machines share
  layer_order order{};     ///< of the objects
  read_limit read_by = read_limit::max(); ///< what has not come from below by then is left to the client

  bool copies() const { return runs != nullptr; }
  bool leased_below() const; ///< anything

  /// Pool by pool instead of chunk by chunk: somebody waits for single pools, and all is in host memory under a lease, so
  /// that nothing more is taken there while the whole chain is held.
  bool by_pool() const;
  /// The same for what a lease holds in tiers below, and for what stores are to have: what is read passes host memory, so that none is
  /// held until the end.
  bool by_layer() const;
  static constexpr size_t by_pool_objects_max = 131'072; ///< of a load in this order
  bool is_awaited() const { return copies() && (arrivals || generations.page) && objects_per_chunk > 1; }
};

struct load_result {
  error failure;                 ///< what ended it early; chunks delivered before remain valid
  size_t chunks = 0;             ///< delivered
  std::optional<size_t> missing; ///< the object that ended it before the end; none if it did not fit
  bool damaged = false;          ///< `missing` could not be read, or its bytes were wrong
  bool late = false;             ///< it ended before what had not come by `read_by`
  uint64_t bytes = 0;
  std::array<uint64_t, tier_kinds> bytes_by_tier{}; ///< by tier_kind in which they were found
  std::shared_ptr<std::vector<object_place>> places = std::make_shared<
      std::vector<object_place>>(); ///< without runs: of the delivered objects in host memory
  std::vector<hold_ptr> holds;      ///< without runs: keep them there
};

/// State passed from one window to the next.
struct load_plan {
  const load_subject& subject;
  const segmented_arena& memory; ///< host memory
  const lease_ledger& leases;
  load_result& done;

  size_t begin = 0;         ///< the object with which the next window begins
  uint64_t promoted = 0;    ///< bytes brought into host memory to stay
  uint64_t chain_bytes = 0; ///< of all objects, physical; 0: not known yet
  uint64_t others_hold = 0; ///< bytes of host memory that are unavailable when the window begins
  unsigned fruitless = 0;   ///< rounds that delivered nothing, less windows that were delivered whole since
  bool piecewise = false;   ///< nothing is copied, and not everything is in host memory already
  bool alone = false;       ///< memory is too short for windows ahead of the next
  bool full = false;        ///< nothing is copied, and there is no room for more

  bool complete() const { return begin == subject.objects->size(); }
  bool delivered_some() const { return done.chunks != 0; }

  /// Without a copy everything must be held at once; if it is in host memory already, that is one window.
  bool whole() const { return !subject.copies() && !piecewise; }
  transfer_window next_window(uint64_t bytes_max) const { return window_from(begin, bytes_max); }
  transfer_window window_from(size_t first, uint64_t bytes_max) const;
  size_t end_of_window(size_t first, uint64_t bytes_max) const;

  /// Windows of a load that copies what a lease holds may come into host memory at a time. They do not wait for memory,
  /// which others of them may hold; those behind the first are given up when it has to.
  static constexpr size_t windows_max = 8;
  bool of_lease() const { return subject.copies() && subject.held_by; }
  /// True if the lease holds all of it in host memory.
  bool leased_in_host(const transfer_window& window) const;
  /// Of the next window of a load into memory of a device. What a lease holds in host memory anyway is one window, so that no time
  /// passes between windows; but whoever watches chunks arrive is told of them window by window, of `most` bytes.
  uint64_t device_window_bytes(uint64_t most) const;
  bool reads_ahead() const { return fruitless == 0 && !alone; }

  /// True for a load that keeps what it brings, and whose connection is charged for that.
  bool charged() const { return !subject.copies() && subject.account; }

  /// The part of host memory that leases and their readers may hold together; the rest is for transfers, which end. A
  /// load that keeps what it brings, and is not charged, counts the transfers too.
  uint64_t held_bytes_max() const { return leases.bytes_max(memory.size()); }

  /// A chain longer than the available host memory cannot stay there: half of what is available is kept, and
  /// the rest is streamed instead of evicting everything else. Memory held by leases and other transfers is not
  /// available.
  bool passes();

  /// The error if a request may not wait for memory held by leases and their readers. `bytes`: what it would add.
  error no_room(uint64_t bytes) const;
};

} // namespace terrace
