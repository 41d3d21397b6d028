// The state of a tier: its objects, their holds, and requests that wait for them. Contains no actor:
// `tier_actor` turns messages into these calls and the results into messages.
#pragma once

#include "base/tier_properties.hpp"
#include "memory/allocator.hpp"
#include "memory/striped_allocator.hpp"
#include "tier/messages.hpp"
#include "tier/objects/awaited_objects.hpp"
#include "tier/objects/demotion.hpp"
#include "tier/objects/durable_index.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/objects/index_keeping.hpp"
#include "tier/objects/journal_sums.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_place.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/policy/policy_notes.hpp"
#include "tier/policy/second_use.hpp"
#include "tier/quota/tenant_quotas.hpp"
#include "tier/search/lease_ledger.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

namespace terrace {

class residency {
 public:
  /// `durable` is given for a tier that survives restarts.
  explicit residency(tier_kind kind = nowhere, std::optional<durable_index> durable = std::nullopt)
      : kind_(kind), durable_(std::move(durable)) {}

  /// Restores the objects recovered after a restart, by ascending generation, into a durable tier before it
  /// serves. `spaces` is parallel, with 0 for an unknown space, whose objects are dropped. Of two objects
  /// with the same key the later is kept. Call `expect` before, with about the number of objects.
  void expect(size_t objects) { residents().reserve(objects); }
  void restore(std::span<const index_record> records, std::span<const space_id> spaces);

  /// The index that lookups may read concurrently.
  std::shared_ptr<tier_index> index() const { return index_; }

  struct found {
    object_bitmap present;
    size_t hits = 0;
    std::vector<object_place> places; ///< filled if held
  };
  /// Looks up the objects of `range`; the result is parallel to it. With `hold`, holds everything that is published.
  found probe(const object_batch& objects, bool hold, bool note_access, object_range range = {});

  /// Records an access to those that are still published, the last first.
  void use(const std::vector<object_id>& ids);

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

  /// Each of these returns the extents that it freed.
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

  /// Removes all published objects with these keys; with `written`, also those being written, which are then
  /// not published.
  struct removal {
    std::vector<bool> removed; ///< parallel to the keys: it was published
    bool pending = false;      ///< some objects are being written, and go on
    discard_result of;
  };
  removal remove(const object_batch& objects, bool written);

  /// Evicts the objects in `range` as soon as they are not held, now or later.
  void retire(extent range);
  /// From now on evicts every object as soon as it is not held: bytes only pass through the tier.
  void only_stage() { stages_ = true; }
  bool stages() const { return stages_; }
  /// Returns the extents freed in these ways since the last call.
  std::vector<extent> take_retired() { return std::exchange(left_, {}); }

  /// Returns the extents of those proposed victims that can be evicted now, and their indices.
  struct offer {
    std::vector<extent> extents;
    std::vector<size_t> victims;
  };
  offer offered(const std::vector<entry_key>& victims) const;

  /// Removes all objects of the space, or all objects, even if held or being written; objects being written
  /// will not be published. In a durable tier the journals are not notified: the caller raises the epoch.
  struct cleared {
    std::vector<extent> freed;
    uint64_t objects = 0;
    uint64_t bytes = 0; ///< physical
  };
  cleared clear(std::optional<space_id> space);

  /// Clears in steps. Objects keep their slots, so a walk over all slots removes every object that was there
  /// when it began.
  struct clear_walk {
    std::optional<space_id> space;
    uint32_t next = 0; ///< the next slot
    cleared sum;       ///< `freed` is only that of the last step
  };
  static constexpr uint32_t clear_slots_max = 8'192; ///< slots looked at in a step
  static constexpr size_t clear_objects_max = 1'024; ///< objects removed in a step
  /// Returns false after the last step.
  bool clear_step(clear_walk& walk);
  /// Between these calls, journals still have the removed objects: they are told of all of them together, afterwards.
  void begin_clear(std::optional<space_id> space) { clears_.push_back(space); }
  void end_clear(std::optional<space_id> space) { clears_.erase(std::ranges::find(clears_, space)); }

  /// Returns which of these are still published; parallel.
  std::vector<bool> confirm(const std::vector<object_id>& ids) const;

  /// Returns the changes for the journals of a durable tier, in order.
  std::vector<index_change> take_changes() {
    return durable_ ? durable_->take_changes() : std::vector<index_change>{};
  }
  image_answer image(const image_request& request) const;
  void begin_epoch(uint64_t epoch) { durable_->begin_epoch(epoch); }
  uint64_t epoch() const { return durable_->epoch(); }
  bool durable() const { return durable_.has_value(); }

  /// Evicts the proposed victims that can be evicted. `refused` counts those that were held or gone.
  struct eviction {
    std::vector<extent> freed;
    size_t refused = 0;
  };
  eviction evict(const std::vector<entry_key>& victims);

  // ---- demotion (residency_demotion.cpp). An object that is `demoting` is found like any other one; a hold, or an object
  // that continues its prefix, makes it `published` again, and it stays ----

  /// From now on the origins of published objects are kept. `before_leaving`: objects that leave with their
  /// segment are written to a tier below first (`take_leaving`).
  void keep_origins(bool before_leaving);
  /// Call before objects of the space are published.
  void remember_space(const space_ptr& space) {
    if (origins_)
      origins_->remember(space, table());
  }
  space_ptr space(space_id id) const { return origins_ ? origins_->space(id) : nullptr; }

  /// From now on `take_second_uses` tells which published objects were used for the second time, once each.
  void watch_uses() { watches_uses_ = true; }
  std::vector<object_id> take_second_uses() { return uses_.take(std::exchange(used_, {})); }
  void forget_second_uses(const std::vector<object_id>& ids) { uses_.forget(ids); }
  /// Returns those that were used a second time since they came here, in their order.
  std::vector<object_id> used_twice(std::vector<object_id> ids) const {
    std::erase_if(ids, [this](object_id id) { return !uses_.was_used(id); });
    return ids;
  }

  /// Makes the victims that can be evicted now `demoting`. Returns their ids, parallel to the victims; 0 for
  /// the others.
  std::vector<object_id> begin_demotion(const std::vector<entry_key>& victims);
  /// Describes published objects for a write; ids that are unknown or 0 are skipped.
  std::vector<demoted_object> describe(const std::vector<object_id>& ids) const;
  /// The memory of these objects is being read: it is not freed before `end_write`.
  void begin_write(const std::vector<object_place>& places);
  /// Returns the extents of those objects that were discarded meanwhile.
  std::vector<extent> end_write(const std::vector<object_id>& ids);
  /// Keeps those that are still `demoting`.
  void keep(const std::vector<object_id>& ids);
  /// Evicts those victims that are still `demoting`; `ids` is the answer of `begin_demotion`.
  eviction evict_demoted(const std::vector<entry_key>& victims, const std::vector<object_id>& ids);

  /// Objects to be written before they leave with their segment: they are `demoting`.
  std::vector<object_id> take_leaving() { return std::exchange(leaving_, {}); }
  /// These objects have been written, or cannot be: those that are still `demoting` leave.
  void leave_now(const std::vector<object_id>& ids);

  /// Returns published objects of the next slots, for a walk over all of them; `next` begins with 0.
  std::vector<object_id> published_from(uint32_t& next, size_t count_max) const;

  /// Calls `done` when no object of the batch is reserved; immediately if none is.
  void await(const object_batch& objects, context_ptr context, awaited_objects::told done);
  /// Calls `done` for requests whose context has ended.
  void sweep() { awaited_.sweep(); }

  /// Returns the events since the last call, in the order that the policy expects.
  policy_notes take_notes();

  /// From now on events are kept for `take_events`, while the log records.
  void record_for(std::shared_ptr<event_log> log) { log_ = std::move(log); }
  std::vector<tier_event> take_events() { return std::exchange(events_, {}); }

  /// True if an object became evictable since the last call.
  bool take_evictable() { return std::exchange(evictable_, false); }

  /// Describes what holds the tier's bytes and cannot be evicted.
  struct holders {
    std::string text; ///< text for `no_space`
    uint64_t leased_bytes = 0;
    bool only_leases = false; ///< no transfer holds anything: nothing will be released until a lease ends
  };
  holders describe_holders() const;

  /// Tells the first tier where its leases are charged.
  void charges(std::shared_ptr<const lease_ledger> leases) { leases_ = std::move(leases); }
  uint64_t leased_bytes() const { return leases_ ? leases_->bytes() : 0; }

  // ---- tenants ----

  /// From now on objects are charged to their tenants, beginning with those that are in the tier now.
  void charges_tenants(std::shared_ptr<tenant_quotas> quotas);
  tenant_quotas* quotas() const { return quotas_.get(); } ///< null: tenants have no quotas

  /// Removes victims from `named` that have to stay because their tenant would fall below its share, unless it is
  /// `maker`, for whom room is made. The policy is told that they are pinned. Returns true if any was removed.
  bool keep_shares(victim_answer& named, tenant_id maker);
  /// Lets the policy name shielded objects of the tenant again, the first `bytes` of them.
  void unshield(tenant_id tenant, uint64_t bytes);
  /// Does the same for all tenants that have more than their share. Returns false if there is no such object.
  bool unshield_all_beyond();
  /// Removes victims from `named` that do not belong to the tenant, cannot be evicted, or were published
  /// since `watch_new`: the policy may have named an earlier object with the same key.
  void keep_only_of(tenant_id tenant, victim_answer& named);
  void watch_new() { fresh_.emplace(); }

  /// Returns those of the spaces that have no object here.
  std::vector<space_id> empty_of(const std::vector<space_id>& spaces) const;

  const resident_table& table() const { return index_->table(); }

  // ---- checks (tier_check.hpp) ----

  void begin_recount();
  void end_recount() { residents().end_recount(); }
  bool recount_step(uint32_t slots) { return residents().recount_step(slots); }
  /// Sums up what the journals of a durable tier on these paths have recorded, before the tier serves.
  void tally_recorded(const path_map& paths);
  std::vector<journal_sums> take_recorded() { return std::move(recorded_); }
  /// Returns the summary of the index by path, from the recount after its last step. Objects that are being
  /// cleared are forgotten in it.
  std::vector<journal_sums> counted_for_journals() const;
  /// True if the policy may have been told that an object without holds is pinned.
  bool may_be_shielded() const { return quotas_ && quotas_->guarantees(); }

  uint64_t evictions = 0;
  uint64_t discarded = 0; ///< damaged objects that were removed

 private:
  resident_table& residents() { return index_->table(); }
  object_place hold(object_id id);
  bool to_replace(const acquire_request& request, const resident& object) const;
  discard_result drop_replaced(const acquire_request& request, const std::vector<size_t>& wanted);
  object_place place_of(object_id id) const;
  void note(note_kind kind, const resident& object, entry_key parent = {});
  /// The same for an object that leaves.
  void note_departure(note_kind kind, const resident& object, miss_reason why);
  /// Leaves if it is in a retired range, or nothing stays; false: it stays, at least for now.
  bool leave(object_id id);
  void drop(object_id id, note_kind why);
  void kept(object_id id); ///< call if it was `demoting`
  void used(object_id id, const resident& object);
  void remember_origin(object_id id, entry_key parent); ///< call when it is being published
  void let_be_named(const std::vector<object_id>& ids);
  uint64_t live_bytes(object_id id) const;
  bool out_of_reach(const resident& object) const { return index_->out_of_reach(object); }

  tier_kind kind_;
  std::optional<durable_index> durable_;
  std::shared_ptr<tier_index> index_ = std::make_shared<tier_index>();
  awaited_objects awaited_;
  std::shared_ptr<const lease_ledger> leases_;
  std::shared_ptr<tenant_quotas> quotas_;
  /// Objects published since `watch_new`; nullopt: nobody asks.
  std::optional<std::unordered_set<entry_key>> fresh_;
  policy_notes notes_;
  std::shared_ptr<event_log> log_; ///< null: nobody subscribes
  std::vector<tier_event> events_;
  std::vector<extent> retired_;
  std::vector<extent> left_;
  std::optional<origins> origins_; ///< kept if objects may be written to a tier below later
  bool writes_before_leaving_ = false;
  std::vector<object_id> leaving_;
  bool watches_uses_ = false;
  std::vector<object_id> used_; ///< objects used since the last `take_second_uses`
  second_use uses_;
  bool evictable_ = false;
  bool stages_ = false;
  void tally(std::vector<journal_sums>& by_path, uint32_t slot, const resident& object, bool counts) const;
  std::optional<path_map> paths_; ///< paths of a durable tier, for checks
  std::vector<journal_sums> recorded_, counted_;
  std::vector<std::optional<space_id>> clears_; ///< clears in progress
};

} // namespace terrace
