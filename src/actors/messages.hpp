// The value types of the messages between actors, grouped by conversation. Requests travel as shared,
// immutable batches: one message to a tier whatever the number of objects.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "index/prefix_plan.hpp"
#include "index/resident_table.hpp"
#include "memory/allocator.hpp"
#include "policy/eviction_types.hpp"

#include <caf/actor.hpp>

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {
struct opened_space;
}

namespace terrace::actors {

using space_ptr = std::shared_ptr<const opened_space>;

/// Keeps something alive until a message, and whatever it started, is done.
using keep_alive = std::shared_ptr<const void>;

/// One client request on its way through the actors. The connection ends it early (cancel, deadline, death);
/// whoever works or waits for it looks here before it goes on.
struct request_context {
  connection_id connection{};
  request_id request = 0;
  uint64_t inference = 0; ///< the client's number of the inference request that this serves; 0: not told
  std::atomic<errc> ended{errc::ok}; ///< ok while the request lives; else why it ended
  bool live() const { return ended.load(std::memory_order_relaxed) == errc::ok; }
};
using context_ptr = std::shared_ptr<request_context>;

/// Objects of one request, chunk by chunk. The vectors are parallel; a probe looks at the keys alone.
struct object_batch {
  std::vector<object_key> keys;
  std::vector<entry_key> parents; ///< policy name of the same object of the previous chunk, or empty
  std::vector<uint64_t> payload_bytes;
  std::bitset<space_spec::pools_max>
      trailing; ///< the pools of which only the last states of a prefix are needed
  size_t size() const { return keys.size(); }
};
using batch_ptr = std::shared_ptr<const object_batch>;

/// A part of a batch. `count` may reach over its end: up to there.
struct object_range {
  size_t first = 0;
  size_t count = SIZE_MAX;
};

/// Where an object lies in its tier's arena.
struct object_place {
  object_id id{};      ///< 0: not there
  uint64_t offset = 0; ///< of the extent: the header block, then the payload (storage/object_header.hpp)
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;
  uint64_t generation = 0; ///< of its write, in a tier that outlives the daemon (storage/index_record.hpp)
  bool present() const { return id != object_id{}; }
};

// ---- ownership of objects in a tier ----

/// Released or abandoned objects, on their way to their tier.
struct release_notice {
  std::vector<object_id> ids;
};
struct abandon_notice {
  std::vector<object_id> ids;
};
/// Reserved objects that will not be published, and whose memory something still writes into: their keys are free at once,
/// their space when the reservation ends.
struct detach_notice {
  std::vector<object_id> ids;
};

/// Published objects that must not leave their tier. The hold ends with its last copy, on whatever thread, by
/// a message to the tier.
class object_hold {
 public:
  object_hold(caf::actor tier, std::vector<object_place> places)
      : tier_(std::move(tier)), places_(std::move(places)) {}
  object_hold(const object_hold&) = delete;
  object_hold& operator=(const object_hold&) = delete;
  ~object_hold();

  /// Parallel to the keys that were asked for.
  const std::vector<object_place>& places() const { return places_; }

  /// Lets everything from `count` on go; what is missing up to there counts as absent.
  void keep_first(size_t count);

  /// Takes over what `more`, of the same tier, holds, from place `first` on. Precondition: nothing is held there yet.
  void append(size_t first, object_hold&& more);

  /// Lets those places go that `keeps` (parallel to them) does not keep.
  void keep_only(const std::vector<bool>& keeps);

 private:
  void release(size_t begin);
  caf::actor tier_;
  std::vector<object_place> places_;
};
using hold_ptr = std::shared_ptr<object_hold>;

/// Space for objects that their owner is writing; what is not published when the last copy goes is given
/// back. Whoever writes into the extents keeps a copy until the last byte is written.
class object_reservation {
 public:
  object_reservation(caf::actor tier, std::vector<object_id> ids)
      : tier_(std::move(tier)), ids_(std::move(ids)) {}
  object_reservation(const object_reservation&) = delete;
  object_reservation& operator=(const object_reservation&) = delete;
  ~object_reservation();

 private:
  caf::actor tier_;
  std::vector<object_id> ids_;
};
using reservation_ptr = std::shared_ptr<object_reservation>;

// ---- to a tier ----

/// Which of these are published? `hold`: and keep them.
struct probe_request {
  batch_ptr objects;
  bool hold = false;
  bool note_access = false;
  object_range range{}; ///< of the batch: what to look at
};
struct probe_answer {
  error failure;
  tier_kind tier = tier_kind::none;
  object_bitmap present;   ///< parallel to the range's keys
  hold_ptr held;           ///< when asked for and anything is present; parallel to the range's keys
  uint64_t held_bytes = 0; ///< physical: of the tier, whoever holds them, this answer's among them
};

/// These were found by probes that noted no use, and are used now, together: a chain's objects in its order.
struct access_notice {
  std::vector<object_id> ids;
};

/// Hold what is published and reserve space for what is absent and `may_fill` (empty: everything may). Whole
/// or not at all: while it waits for memory it holds nothing, so two requests cannot wait for each other.
struct acquire_request {
  batch_ptr objects;
  std::vector<bool> may_fill;
  bool fill = true;     ///< false: reserve nothing, as if `may_fill` were all false
  bool may_wait = true; ///< false: `no_space` at once when eviction cannot make room now
  bool note_access = true;
  bool may_evict = true; ///< false: take what is free
  context_ptr context;   ///< may be null: a request of the daemon itself
};
enum class acquired_state : uint8_t {
  absent, ///< not there, and not to be filled (or gone since)
  held,
  reserved, ///< yours to write and publish
  pending,  ///< somebody else is writing it: `await_request`, then acquire again
};
struct acquire_answer {
  error failure;
  std::vector<acquired_state> states; ///< parallel to the keys
  std::vector<object_place> places;   ///< parallel; of held and reserved objects
  hold_ptr held;
  reservation_ptr reserved;
  uint64_t held_bytes = 0; ///< physical: of the tier, whoever holds them, this answer's among them
};

/// The reserved objects are complete. `hold`: and keep them.
struct publish_request {
  std::vector<object_place> places;
  bool hold = false;
  uint64_t inference = 0; ///< that they were written for; 0: none that is known
  space_ptr in;           ///< of all of them; a durable tier has to know
};
struct publish_answer {
  error failure;
  hold_ptr held;
};

/// Answered when none of these keys is being written any more.
struct await_request {
  batch_ptr objects;
  context_ptr context;
};
struct await_answer {
  error failure;
};

/// An object's bytes turned out wrong or unreadable: it is never served again.
struct discard_notice {
  std::vector<object_id> ids;
};

/// Which of these are published still? Asked of the tier that bytes come from, by a transfer whose destination is reserved.
/// A clear goes through the tiers from the fastest down and through the fastest once more, and takes what is published
/// and what is reserved: so nothing that it took comes back by a transfer that was under way.
struct confirm_request {
  std::vector<object_id> ids;
};
struct confirm_answer {
  error failure;
  std::vector<bool> present; ///< parallel
};

/// Forget all objects of the space, or all there are, also those that are held: whoever holds them may read on.
struct clear_request {
  std::optional<space_id> space;
};
struct clear_answer {
  error failure; ///< they are gone, but may come back after a restart
  uint64_t objects = 0;
  uint64_t bytes = 0; ///< physical
};

/// A request ended early: whatever waits for it is answered now.
struct sweep_notice {};

struct tier_status_request {};
struct tier_report {
  error failure;
  tier_kind kind = tier_kind::none;
  std::string state = "ready";
  std::string reason;
  std::string allocator;
  std::string policy;
  allocator_usage usage;
  uint64_t room_bytes = 0;                         ///< of usage_answer
  uint64_t huge_page_bytes = 0, leaving_bytes = 0; ///< of host memory
  std::string notice;
  uint64_t objects = 0;
  uint64_t held_objects = 0;
  uint64_t waiting = 0;
  uint64_t hits = 0, misses = 0, evictions = 0, bytes_read = 0, bytes_written = 0, errors = 0;
};

// ---- tier and allocator ----

/// One extent for each size: all or none. Waits in arrival order while `may_wait` and eviction may still make
/// room. Without `may_evict` it takes what is free, and lets those behind it pass while it waits.
struct allocate_request {
  std::vector<uint64_t> sizes;
  bool may_wait = true;
  context_ptr context;
  bool may_evict = true;
};
struct allocate_answer {
  error failure;
  std::vector<extent> extents;
};
struct free_notice {
  std::vector<extent> extents;
};
/// From the allocator to its tier: evict at least this much.
struct room_request {
  uint64_t bytes = 0;     ///< what is missing; 0 when enough is free, but not in runs of the right size
  uint64_t needed = 0;    ///< by the request that waits: the tier asks which victims serve it; 0: none waits
  uint64_t inference = 0; ///< that the request serves; 0: none that is known
  friend bool operator==(const room_request&, const room_request&) = default;
};
/// The tier's answer: what its victims gave back. `exhausted`: nothing more may leave now (`for_one`: not enough for the
/// request that waits); the tier sends another `room_made` when that changes.
struct room_made {
  std::vector<extent> extents;
  bool exhausted = false;
  std::string holders;
  bool for_one = false;
};
/// From the tier, between the two: these would leave, in this order. Which of them does the waiting request need?
struct choose_request {
  std::vector<extent> candidates;
};
struct choose_answer {
  error failure;
  bool waits = true;          ///< false: nobody needs room any more
  std::vector<size_t> chosen; ///< indices, ascending; empty: not even all are enough
};
/// To a tier, and from it to its allocator: the arena is larger by `bytes`, behind `gap_bytes` of nothing.
struct grow_notice {
  uint64_t bytes = 0;
  uint64_t gap_bytes = 0;
};
/// To a tier, and from it to its allocator: nothing new is put into these segments, and what lies there leaves as soon as
/// nobody holds it. Answered when nothing does.
struct retire_request {
  extent range;
};
struct retire_answer {
  error failure;
};
struct usage_request {};
struct usage_answer {
  error failure;
  allocator_usage usage;
  uint64_t room_bytes = 0; ///< free, and not kept free ahead of need: a store of so much makes nobody leave
  uint64_t waiting = 0;
  std::string allocator;
};

// ---- tier and policy ----

enum class note_kind : uint8_t { insert, hit, erase, pin, unpin };
struct policy_note {
  note_kind kind;
  entry_key key;
  entry_key parent;
  uint64_t bytes = 0;
};
/// One batch for each request, in the order of use: last chunk first.
struct policy_notes {
  tier_kind tier = tier_kind::none;
  std::vector<policy_note> notes;
  uint64_t inference = 0; ///< that inserts are for: its use of them was told by `inference_begin`
};

/// From the preparer: residents that were found after a restart, root first. Answered when the policy knows them, so that
/// millions of them do not wait in its mailbox.
struct restored_request {
  policy_notes found;
};
struct restored_answer {
  error failure;
};

/// From a tier, behind some batches of notes; the policy gives it back when it has applied them.
struct notes_mark {};

/// From a connection, with the first request of an inference that leases or loads: its whole chain, present or not. It is
/// the inference's one use of these objects, in all tiers. An inference that has begun already changes nothing.
struct inference_begin {
  uint64_t inference = 0;
  batch_ptr objects; ///< root first
  request_hints hints;
  std::optional<policy_time> told; ///< by the client's clock
};

/// From a connection: what was told at an inference's end. One that nobody began changes nothing.
struct inference_end {
  uint64_t inference = 0;
  request_outcome outcome;
  std::optional<policy_time> told; ///< by the client's clock
};
struct victim_request {
  tier_kind tier = tier_kind::none;
  uint64_t bytes = 0;
  uint64_t inference =
      0; ///< room is made for it: what it uses itself is not named; 0: for none that is known
};
struct victim_answer {
  error failure;
  std::vector<entry_key> victims;
  std::vector<entry_key> above; ///< parallel: the ancestor that may leave only when the victim does, or empty
  uint64_t bytes = 0;           ///< of all victims; less than was asked for: no more may leave
};
/// How many of these, from the first on, should the tier take (eviction_tracker::admitted)?
struct admit_request {
  tier_kind tier = tier_kind::none;
  admission_rule rule = admission_rule::always;
  std::vector<entry_info> entries;
};
struct admit_answer {
  error failure;
  size_t admitted = 0;
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
