// The decisions of a tier: which objects exist, who holds them, who waits for them. No actor inside: `tier_actor` turns
// messages into these calls and the results into messages.
#pragma once

#include "memory/allocator.hpp"
#include "tier/acquire.hpp"
#include "tier/awaited_objects.hpp"
#include "tier/durable_index.hpp"
#include "tier/object_batch.hpp"
#include "tier/object_place.hpp"
#include "tier/policy_notes.hpp"
#include "tier/tier_index.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace terrace {

class residency {
 public:
  /// `durable`: of a tier that outlives the daemon.
  explicit residency(tier_kind kind = tier_kind::none, std::optional<durable_index> durable = std::nullopt)
      : kind_(kind), durable_(std::move(durable)) {}

  /// Objects that were found after a restart, by ascending generation; `spaces` is parallel, 0 for a space that nobody
  /// knows any more, whose objects are left out. Of two with one key the later counts. For a durable tier before it
  /// serves.
  void restore(std::span<const index_record> records, std::span<const space_id> spaces);

  /// What lookups may read beside this.
  std::shared_ptr<tier_index> index() const { return index_; }

  struct found {
    object_bitmap present;
    size_t hits = 0;
    std::vector<object_place> places; ///< filled when held
  };
  /// Parallel to the range of the batch. `hold` takes a hold of everything published.
  found probe(const object_batch& objects, bool hold, bool note_access, object_range range = {});

  /// Notes a use of what is still published of these, the last first.
  void use(const std::vector<object_id>& ids);

  /// What `acquire` would have to allocate now: physical sizes, and the index of the object each is for.
  struct need {
    std::vector<uint64_t> sizes;
    std::vector<size_t> objects;
  };
  need missing(const acquire_request& request) const;

  /// Holds and reserves. `granted` are the extents for `wanted`; those that are no longer needed go into `unused`.
  struct acquired {
    std::vector<acquired_state> states;
    std::vector<object_place> places;
    std::vector<object_place> held; ///< parallel to the batch
    std::vector<object_id> reserved;
    std::vector<extent> unused; ///< and those of objects that are written anew because they cannot be had
  };
  acquired acquire(const acquire_request& request, const need& wanted, const std::vector<extent>& granted);

  /// Makes reserved objects visible; those that are not reserved (any more) are skipped. Returns the places, parallel,
  /// held when `hold`.
  std::vector<object_place> publish(const std::vector<object_place>& places, bool hold,
                                    uint64_t inference = 0);

  /// Each returns the extents that are free now.
  std::vector<extent> release(const std::vector<object_id>& ids);
  std::vector<extent> abandon(const std::vector<object_id>& ids);
  /// Takes reserved objects out of the index, and lets go of those who await them; `abandon` frees them.
  void detach(const std::vector<object_id>& ids);
  std::vector<extent> discard(const std::vector<object_id>& ids);

  /// What lies in `range` leaves as soon as nobody holds it, now or later.
  void retire(extent range);
  /// The extents of what left so since the last call, which are free now.
  std::vector<extent> take_retired() { return std::exchange(left_, {}); }

  /// The extents of those proposed victims that may leave now, and which of them they are.
  struct offer {
    std::vector<extent> extents;
    std::vector<size_t> victims;
  };
  offer offered(const std::vector<entry_key>& victims) const;

  /// Takes all objects of the space out, or all there are, whoever holds or writes them: what is being written is not
  /// published any more. Of a durable tier nothing is told to the journal: who asks for this raises the epoch.
  struct cleared {
    std::vector<extent> freed;
    uint64_t objects = 0;
    uint64_t bytes = 0; ///< physical
  };
  cleared clear(std::optional<space_id> space);

  /// Which of these are published still. Parallel.
  std::vector<bool> confirm(const std::vector<object_id>& ids) const;

  /// Of a durable tier: what its journal should hear, in order.
  std::vector<index_change> take_changes() {
    return durable_ ? durable_->take_changes() : std::vector<index_change>{};
  }
  std::vector<index_change> image(uint32_t first, uint32_t count) const {
    return durable_->image(table(), first, count);
  }
  void begin_epoch(uint64_t epoch) { durable_->begin_epoch(epoch); }
  uint64_t epoch() const { return durable_->epoch(); }
  bool durable() const { return durable_.has_value(); }

  /// Removes the proposed victims that may leave. `refused` counts those that were held or gone meanwhile.
  struct eviction {
    std::vector<extent> freed;
    size_t refused = 0;
  };
  eviction evict(const std::vector<entry_key>& victims);

  /// Calls `done` when no object of the batch is reserved; at once if none is.
  void await(const object_batch& objects, context_ptr context, std::function<void(errc)> done);
  /// Calls `done` of the waiters whose context has ended.
  void sweep() { awaited_.sweep(); }

  /// What happened since the last call, in the order in which the policy should hear it.
  policy_notes take_notes();

  /// Whether an object became evictable since the last call.
  bool take_evictable() { return std::exchange(evictable_, false); }

  /// A text that says what keeps the tier's bytes, for `no_space`.
  std::string describe_holders() const;

  const resident_table& table() const { return index_->table(); }

  uint64_t evictions = 0;
  uint64_t discarded = 0;

 private:
  resident_table& residents() { return index_->table(); }
  object_place hold(object_id id);
  std::vector<extent> drop_out_of_reach(const object_batch& objects, const std::vector<size_t>& wanted);
  object_place place_of(object_id id) const;
  void note(note_kind kind, const resident& object, entry_key parent = {});
  bool leave(object_id id); ///< when it lies in a retired range
  bool out_of_reach(const resident& object) const { return index_->out_of_reach(object); }

  tier_kind kind_;
  std::optional<durable_index> durable_;
  std::shared_ptr<tier_index> index_ = std::make_shared<tier_index>();
  awaited_objects awaited_;
  policy_notes notes_;
  std::vector<extent> retired_;
  std::vector<extent> left_;
  bool evictable_ = false;
};

} // namespace terrace
