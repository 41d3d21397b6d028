// The conversation with a tier: what it is asked and told, and what it asks its allocator and its policy. Who sends each of
// these stands in actors/interfaces.hpp.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/miss_reason.hpp"
#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "base/tier_properties.hpp"
#include "index/object_header.hpp"
#include "index/prefix_plan.hpp"
#include "index/resident.hpp"
#include "index/space_registry.hpp"
#include "index/tenant_directory.hpp"
#include "memory/allocator.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/quota/tenant_states.hpp"
#include "tier/space/write_credit.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// ---- what a tier has, and holding it ----

/// Asks which of these are published. With `hold`, they are held.
struct probe_request {
  batch_ptr objects;
  bool hold = false;
  bool note_access = false;
  object_range range{}; ///< the part of the batch to query
  size_t chains = 0;    ///< objects of the range that continue each other, as in `access_notice`
  bool counts = true;   ///< count hits and misses; otherwise the requester counts what it takes
};
struct probe_answer {
  error failure;
  tier_kind tier = nowhere;
  object_bitmap present;   ///< parallel to the range's keys
  hold_ptr held;           ///< if requested and anything is present; parallel to the range's keys
  uint64_t held_bytes = 0; ///< if requested: bytes of the tier that anybody holds, these objects included
};

/// One hold of each of these objects has ended (`object_hold`).
struct release_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published (`object_reservation`).
struct abandon_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published, and whose memory is still being written: their keys become
/// free immediately, their space when the reservation ends.
struct detach_notice {
  std::vector<object_id> ids;
};

/// Objects that were found by probes without recording an access, and are accessed now, together: a chain's
/// objects in order.
struct access_notice {
  std::vector<object_id> ids; ///< 0: an object that is not accessed
  /// Object n + `chains` continues object n: the policy is told of a run of them by one note. 0: none does.
  size_t chains = 0;
};

enum class discard_reason : uint8_t {
  damaged,  ///< its bytes are wrong or unreadable
  unusable, ///< other ranks of its chunk are missing and will not come
  unwanted, ///< nobody refers to it any more: it leaves a store that others share, too
  replaced, ///< somebody removes it, or stores another in its place
  moved,    ///< a tier below has it; the object stays if anybody but the sender holds it
};

/// These objects are never served again.
struct discard_notice {
  std::vector<object_id> ids;
  discard_reason why = discard_reason::damaged;
};

struct list_objects_request {
  static constexpr size_t objects_max = 1'024;
  static constexpr uint32_t slots_max = 8'192; ///< slots looked at per request
  uint32_t first = 0;                          ///< first slot: 0, or `next` of the answer before
};
struct list_objects_answer {
  error failure; ///< always `ok`
  std::vector<object_key> objects;
  uint32_t next = 0;
  bool last = false; ///< no further objects follow
};

struct count_objects_request {
  space_id space{};
};
struct count_objects_answer {
  error failure;        ///< always `ok`
  uint64_t objects = 0; ///< in any state
};

struct empty_spaces_request {
  static constexpr size_t spaces_max = 4'096; ///< per request
  std::vector<space_id> of;
};
struct empty_spaces_answer {
  error failure;
  std::vector<space_id> empty; ///< spaces of which the tier has no object
};

/// These spaces have no object in any tier, and their numbers are never used again.
struct forget_spaces_notice {
  std::vector<space_id> gone;
};

// ---- space for objects, and making them visible ----

/// Holds published objects and reserves space for absent ones with `may_fill` (empty: all). All or nothing: a
/// request that waits for memory holds nothing, so two requests cannot deadlock.
struct acquire_request {
  batch_ptr objects;
  std::vector<bool> may_fill;
  bool fill = true;     ///< false: reserve nothing, as if `may_fill` were all false
  bool may_wait = true; ///< false: `no_space` at once if eviction cannot make room now
  bool note_access = true;
  /// Replaces published objects with these keys: they are removed in the turn that reserves space for the new
  /// ones, and found until then. Objects that others are writing stay `pending`.
  bool replace = false;
  bool may_come_again =
      false; ///< after `no_space` the requester asks for less, or is content without: nobody is refused yet
  context_ptr context; ///< null for a request of the daemon itself
};
enum class acquired_state : uint8_t {
  absent, ///< not present, and not to be filled (or evicted since)
  held,
  reserved, ///< for the caller to write and publish
  pending,  ///< being written by another request: send `await_request`, then acquire again
};
struct acquire_answer {
  error failure;
  std::vector<acquired_state> states; ///< parallel to the keys
  std::vector<object_place> places;   ///< parallel; set for held and reserved objects
  hold_ptr held;
  reservation_ptr reserved;
  uint64_t held_bytes = 0; ///< physical bytes of the tier that anybody holds, this answer included

  bool any(acquired_state acquired) const {
    return std::find(states.begin(), states.end(), acquired) != states.end();
  }
};

/// The reserved objects are complete. With `hold`, they are held.
struct publish_request {
  std::vector<object_place> places;
  bool hold = false;
  uint64_t inference = 0; ///< the inference that they were written for; 0: none or unknown
  space_ptr
      space; ///< the space of all of them; a durable tier needs it, and a tier that writes objects down later
};
struct publish_answer {
  error failure;
  hold_ptr held;
  size_t published = 0; ///< objects; the space of the others stays with their writer
};

/// The answer comes when none of these keys is being written.
struct await_request {
  batch_ptr objects;
  context_ptr context;
};
struct await_answer {
  error failure;
  bool abandoned = false; ///< a writer gave up one of them; otherwise all were written
};

/// Asks the source tier, after the destination is reserved, which of these objects are still published, and not being removed
/// from all tiers (tier/objects/tier_clear.hpp): so nothing that was removed comes back through a transfer in progress.
struct confirm_request {
  std::vector<object_id> ids;
};
struct confirm_answer {
  error failure;
  std::vector<bool> present; ///< parallel to the objects
};

// ---- removing objects ----

/// Removes all published objects with these keys: they are never found once the request is answered.
struct remove_request {
  batch_ptr objects;
  /// Objects being written under the keys are not published; their space stays with the writer until it ends.
  /// False: they go on.
  bool written = true;
  discard_reason why = discard_reason::replaced;
  /// As long as whoever removes keeps it, the tier confirms none of these objects. Null: for the other tiers.
  std::shared_ptr<const void> in_progress{};
};
struct remove_answer {
  error failure;
  std::vector<bool> removed; ///< parallel to the keys: it was published
  bool pending = false;      ///< some objects are being written, and go on: send `await_request`
  uint64_t objects = 0;      ///< removed
  uint64_t bytes = 0;        ///< physical
};

/// Removes all objects of the space, or all objects, including held ones: their holders may continue reading.
struct clear_request {
  std::optional<space_id> space;
  std::optional<space_fingerprint>
      fingerprint{};           ///< fingerprint of that space; a volume may know it by an earlier number
  bool by_other = false;       ///< another machine has cleared, and a tier on a store that it shares knows
  bool published_only = false; ///< what is being written stays, and the keeper of the index is not told
  /// As long as whoever clears keeps it, the tier confirms no object of the space. Null: for the other tiers.
  std::shared_ptr<const void> in_progress{};
};
struct clear_answer {
  error failure; ///< the objects are removed, but may come back after a restart
  uint64_t objects = 0;
  uint64_t bytes = 0; ///< physical
  std::optional<pending_clear>
      missed{}; ///< in a tier that outlives its daemon: paths of its volume that do not know of the clear
};

// ---- writing objects to the tiers below ----

/// The results for some objects. Objects that the tier below had already are in neither count.
struct demotion_counts {
  uint64_t objects = 0; ///< written
  uint64_t bytes = 0;   ///< bytes of their payload
  std::array<uint64_t, refusal_reasons> lost{};

  void lose(refusal_reason why, uint64_t count) { lost[static_cast<size_t>(why)] += count; }
  uint64_t lost_in_all() const {
    uint64_t sum = 0;
    for (uint64_t each : lost)
      sum += each;
    return sum;
  }
  void add(const demotion_counts& more) {
    objects += more.objects;
    bytes += more.bytes;
    for (size_t i = 0; i < lost.size(); ++i)
      lost[i] += more.lost[i];
  }
};

/// When a demotion is written, and what that costs.
enum class demotion_turn : uint8_t {
  first,     ///< before all others: a round of eviction waits for it
  in_turn,   ///< after those that wait, without a credit: the sender has one demotion at a time
  if_credit, ///< in turn at the cost of a credit, or not at all
};

/// A tier or a move sends it to the write-through of another tier, which writes the objects out of the memory that is
/// held. (delayed: until each is written, or will not be)
struct demote_request {
  space_ptr space;
  batch_ptr objects;
  hold_ptr held;
  demotion_turn turn = demotion_turn::first;
  credit_ptr credit{}; ///< with `if_credit`: that one; null: one is taken
};
struct demote_answer {
  error failure;
  demotion_counts done;
  bool stalled = false; ///< the device may still read the memory, so the hold does not end soon
  hold_ptr arrived{};   ///< in a write to host memory: holds what was written until the demotion is over
};

/// The hold of a `demote_request` sends it: nothing reads the memory of these objects any more.
struct written_notice {
  uint64_t demotion = 0; ///< number of the demotion, and of its batch
  size_t batch = 0;
  std::vector<object_id> ids;
};

/// The supervisor sends it at the end: write the objects that only this tier has. (delayed: until that is
/// done, or at `until`)
struct write_down_request {
  std::chrono::steady_clock::time_point until;
};
struct write_down_answer {
  error failure;
  bool complete = true; ///< false: there was no time for all
  demotion_counts done{};
};

// ---- a tier and its allocator ----

/// One extent per size, all or none. Waits (tier/space/allocation_queue.hpp) as long as `may_wait` is set and something
/// other than the end of leases may still make room.
struct allocate_request {
  std::vector<uint64_t> sizes;
  bool may_wait = true;
  context_ptr context;
  tenant_id
      tenant{}; ///< tenant of the objects: its own objects make room for them, too, whatever it is guaranteed
};
struct allocate_answer {
  error failure;
  std::vector<extent> extents;
};
struct free_notice {
  std::vector<extent> extents;
};

/// The arena grew by `bytes`, after an unused gap of `gap_bytes`.
struct grow_notice {
  uint64_t bytes = 0;
  uint64_t gap_bytes = 0;
};

/// Stops allocation in these segments; their objects are evicted as soon as they are not held. The answer
/// comes when they are empty.
struct retire_request {
  extent range;
};
struct retire_answer {
  error failure;
};

class eviction_round;

/// An allocator asks its tier to make room (tier/space/eviction_round.hpp). The tier owns the round until it answers.
struct room_request {
  std::shared_ptr<eviction_round> round;
};
/// The answer has the completed round.
struct room_made {
  std::shared_ptr<eviction_round> round;
};
/// The tier sends it once after a failed round: something became evictable, or what transfers held has passed to leases.
struct evictable_notice {};

/// The host tier gets it from its ledger of leases, after it has asked for it: leases hold more bytes.
struct leases_grew_notice {};

struct usage_request {};
struct usage_answer {
  error failure;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free and not kept free ahead of demand: a store of this size evicts nothing
  uint64_t waiting = 0;
  std::string allocator;
};

// ---- a tier and its policy ----

/// The tier sends it to the policy.
struct victim_request {
  tier_kind tier = nowhere;
  uint64_t bytes = 0;
  uint64_t inference =
      0; ///< room is made for this inference, and its own objects are not proposed; 0: unknown
};
struct victim_answer {
  error failure;
  std::vector<entry_key> victims;
  std::vector<entry_key> above; ///< parallel: the ancestor that is evictable only after the victim, or empty
  uint64_t bytes = 0;           ///< sum of all victims; less than requested: no more are evictable

  /// Removes the victims for which `leaves(victim, above)`, called in their order, is false. `bytes` stays: it says whether more
  /// are evictable. Returns true if it removed any.
  template <class Leaves>
  bool keep_only(Leaves&& leaves) {
    const size_t all = victims.size();
    above.resize(all);
    size_t left = 0;
    for (size_t i = 0; i < all; ++i)
      if (leaves(victims[i], above[i])) {
        victims[left] = victims[i];
        above[left++] = above[i];
      }
    victims.resize(left);
    above.resize(left);
    return left != all;
  }
};

// ---- operators ----

/// Sent to a tier after the group's `tenant_directory` has changed.
struct quotas_changed_notice {};

/// Sent to the supervisor after a reload: the quotas of each group, in the order of `groups`.
struct quotas_notice {
  std::vector<std::vector<tenant_quota>> of_groups;
};

struct tier_status_request {};
struct tier_report {
  error failure;
  tier_kind kind = nowhere;
  std::string state = "ready";
  std::string reason;
  std::string allocator;
  std::string policy;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free and not kept free ahead of demand: a store of this size evicts nothing
  uint64_t huge_page_bytes = 0, leaving_bytes = 0; ///< in host memory
  std::string notice;
  uint64_t read_bytes_per_s = 0; ///< measured; 0: not known
  uint64_t objects = 0;
  uint64_t held_objects = 0;
  uint64_t waiting = 0;
  uint64_t hits = 0, misses = 0, evictions = 0, bytes_read = 0, bytes_written = 0, errors = 0;
  std::vector<tenant_report> tenants; ///< quotas first
  struct space_share {
    uint64_t objects = 0;
    uint64_t bytes = 0; ///< physical
  };
  std::map<uint32_t, space_share> spaces; ///< by number: those that have any object here
};

} // namespace terrace
