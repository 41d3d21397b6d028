// The state of a tier: its objects, their holds, and requests that wait for them. Contains no actor:
// `tier_actor` turns messages into these calls and the results into messages.
#pragma once

#include "base/tier_properties.hpp"
#include "memory/allocator.hpp"
#include "tier/messages.hpp"
#include "tier/objects/awaited_objects.hpp"
#include "tier/objects/durable_index.hpp"
#include "tier/objects/index_recount.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_departures.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/objects/tier_objects.hpp"
#include "tier/policy/policy_messages.hpp"
#include "tier/quota/tenant_shares.hpp"
#include "tier/search/lease_ledger.hpp"

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace terrace {

/// Its parts have addresses of their own: objects that leave, tenants, checks, journals, subscribers. Every change of an
/// object goes through `tier_objects`, which they share. Used by one thread at a time, except for the index.
class residency {
 public:
  /// `durable` is given for a tier that survives restarts.
  explicit residency(tier_kind kind = nowhere, std::optional<durable_index> durable = std::nullopt)
      : objects_(kind, std::move(durable)) {}

  /// Restores the objects recovered after a restart, by ascending generation, into a durable tier before it
  /// serves. `spaces` is parallel, with 0 for an unknown space, whose objects are dropped. Of two objects
  /// with the same key the later is kept. Call `expect` before, with about the number of objects.
  void expect(size_t objects) { residents().reserve(objects); }
  void restore(std::span<const index_record> records, std::span<const space_id> spaces);

  /// The index that lookups may read concurrently.
  const std::shared_ptr<tier_index>& index() const { return objects_.index(); }

  struct found {
    object_bitmap present;
    size_t hits = 0;
    std::vector<object_place> places; ///< filled if held
  };
  /// Looks up the objects of the request's range; the result is parallel to it. With `hold`, holds everything that is
  /// published.
  found probe(const probe_request& request);

  /// Records an access to those that are still published, the last first.
  void use(const access_notice& accessed);

  /// The objects that `acquire` would have to allocate now: physical sizes, and the index of each object.
  struct need {
    std::vector<uint64_t> sizes;
    std::vector<size_t> objects;
  };
  need missing(const acquire_request& request) const;

  /// Holds published objects and reserves absent ones. `granted` are the extents for `wanted`; those no
  /// longer needed are returned in `unused`.
  struct acquired {
    std::vector<acquired_state> states;
    std::vector<object_place> places;
    std::vector<object_place> held; ///< parallel to the batch
    std::vector<object_id> reserved;
    /// Includes those of objects that are written again because they are unreachable.
    std::vector<extent> unused;
    uint64_t replaced = 0, replaced_bytes = 0; ///< objects removed in favor of reserved ones; physical
  };
  acquired acquire(const acquire_request& request, const need& wanted, const std::vector<extent>& granted);

  /// Makes reserved objects visible; those no longer reserved are skipped. Returns the places, parallel, held
  /// if `hold`.
  std::vector<object_place> publish(const std::vector<object_place>& places, bool hold,
                                    uint64_t inference = 0);

  /// Ends holds, also those of `object_departures::begin_write`. This and `abandon` return the extents that they freed.
  std::vector<extent> release(const std::vector<object_id>& ids);
  std::vector<extent> abandon(const std::vector<object_id>& ids);
  /// Removes reserved objects from the index and ends the wait for them; `abandon` frees them.
  void detach(const std::vector<object_id>& ids);

  /// Removes objects that must never be served again; held ones are freed with their last hold.
  struct discard_result {
    std::vector<extent> freed;
    uint64_t objects = 0;
    uint64_t bytes = 0; ///< physical size of all of them
  };
  discard_result discard(const std::vector<object_id>& ids, discard_reason why = discard_reason::damaged);

  /// Removes all published objects with these keys, and also those being written if it is asked for, which are then not
  /// published.
  struct removal {
    std::vector<bool> removed; ///< parallel to the keys: it was published
    bool pending = false;      ///< some objects are being written, and go on
    discard_result of;
  };
  removal remove(const remove_request& request);

  /// Clears in steps: removes all objects of the space, or all objects, even if held or being written; objects being
  /// written will not be published. In a durable tier the journals are not notified: the caller raises the epoch. Objects
  /// keep their slots, so a walk over all slots removes every object that was there when it began. With `published_only` what
  /// is being written stays.
  struct clear_walk {
    std::optional<space_id> space;
    bool published_only = false;
    uint32_t next = 0;                       ///< the next slot
    std::vector<extent> freed;               ///< by the last step
    bool last = false;                       ///< when it is over, objects are confirmed again
    uint64_t objects = 0;                    ///< removed in all
    uint64_t bytes = 0;                      ///< physical
    std::weak_ptr<const void> in_progress{}; ///< see `confirm`
  };
  static constexpr uint32_t clear_slots_max = 8'192; ///< slots looked at in a step
  static constexpr size_t clear_objects_max = 1'024; ///< objects removed in a step
  /// Returns false after the last step.
  bool clear_step(clear_walk& walk);

  /// Returns which of these are still published, and not being removed from all tiers; parallel. Whoever removes says so by
  /// its first `in_progress`. With a second one, the same, it asks for the last time: nothing comes back any more.
  std::vector<bool> confirm(const std::vector<object_id>& ids) const;

  /// Null: the tier does not survive restarts.
  durable_index* durable() { return objects_.durable(); }

  /// Calls `done` when no object of the batch is reserved; immediately if none is.
  void await(const object_batch& objects, context_ptr context, awaited_objects::told done);
  /// Calls `done` for requests whose context has ended.
  void sweep() { awaited_.sweep(); }

  /// Returns the events since the last call, in the order that the policy expects.
  policy_notes take_notes();

  tier_events& events() { return objects_.events; }

  /// True if an object became evictable since the last call.
  bool take_evictable() { return std::exchange(objects_.evictable, false); }

  /// Describes what holds the tier's bytes and cannot be evicted.
  struct holders {
    std::string text; ///< text for `no_space`
    uint64_t leased_bytes = 0;
    uint64_t transfer_bytes = 0; ///< that transfers hold and no lease does, and of writes in progress
    /// No transfer holds anything: nothing will be released until a lease ends.
    bool only_leases() const { return leased_bytes != 0 && transfer_bytes == 0; }
  };
  holders describe_holders() const;
  bool only_leases_hold() const { return count_holders().only_leases(); }

  /// Tells the first tier where its leases are charged.
  void charges(std::shared_ptr<const lease_ledger> leases) { leases_ = std::move(leases); }
  uint64_t leased_bytes() const { return leases_ ? leases_->bytes() : 0; }

  object_departures& departures() { return departures_; }
  const object_departures& departures() const { return departures_; }
  tenant_shares& shares() { return shares_; }
  const tenant_shares& shares() const { return shares_; }
  index_recount& recount() { return recount_; }
  const resident_table& table() const { return objects_.table(); }

  uint64_t discarded = 0; ///< damaged objects that were removed

 private:
  resident_table& residents() { return objects_.table(); }
  object_place hold(object_id id);
  void used(object_id id, const resident& object);
  void use_chain(std::span<const object_id> ids, size_t last, size_t step);
  bool out_of_reach(const resident& object) const { return objects_.index()->out_of_reach(object); }
  bool to_replace(const acquire_request& request, const resident& object) const;
  discard_result drop_replaced(const acquire_request& request, const std::vector<size_t>& wanted);

  struct removal_in_progress {
    std::optional<space_id> space; ///< none: all spaces
    batch_ptr objects;             ///< null: all objects
    std::weak_ptr<const void> ends;
  };
  void begin_removal(removal_in_progress begun);
  bool is_last_removal(const std::weak_ptr<const void>& by) const;
  void end_removal(const std::weak_ptr<const void>& by);
  bool is_being_removed(const object_key& key) const;
  holders count_holders() const; ///< without the text

  tier_objects objects_;
  std::vector<removal_in_progress> removals_; ///< some may have ended
  object_departures departures_{objects_};
  tenant_shares shares_{objects_};
  index_recount recount_{objects_};
  awaited_objects awaited_;
  std::shared_ptr<const lease_ledger> leases_;
};

} // namespace terrace
