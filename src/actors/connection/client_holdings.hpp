// What a connection holds for its client: open spaces, registered regions, staging memory, mapped segments, and leases, its own
// and those that it reads. When it goes, all of it is given back.
//
// Pure: no actor, and time is an argument. One thread at a time.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/connection/staging.hpp"
#include "index/token_hasher.hpp"
#include "memory/client_mapping.hpp"
#include "metrics/space_table.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace terrace::actors {

/// A space as this connection opened it.
struct client_space {
  space_ptr what;
  std::shared_ptr<token_hasher> hasher;
  uint16_t rank = 0;
  std::shared_ptr<metrics::space_probe> probe;
};
using client_space_ptr = std::shared_ptr<const client_space>;
using client_region_ptr = std::shared_ptr<const client_region>;

class client_holdings {
 public:
  using clock = std::chrono::steady_clock;

  struct bounds {
    uint64_t staging_bytes = 0;
    uint32_t regions = 0;
    uint32_t leases = 0;
    uint64_t lease_objects = 0; ///< of all leases together; an object counts as often as it is named
  };

  explicit client_holdings(const bounds& most) : most_(most) {}

  // ---- spaces ----

  void add(client_space_ptr opened) { spaces_[opened->what->id] = std::move(opened); }
  client_space_ptr space(space_id id) const; ///< null: this connection has not opened it

  // ---- regions ----

  /// Errors: `busy` at the bound.
  result<region_id> add(client_region_ptr region);
  client_region_ptr region(region_id id) const; ///< null: there is none
  /// Transfers in flight keep it until they are done. Null: there was none.
  client_region_ptr remove(region_id id);
  uint32_t regions() const { return static_cast<uint32_t>(regions_.size()); }
  uint64_t region_bytes() const { return region_bytes_; }

  // ---- staging memory and segments ----

  /// Made when it is first asked for. Errors: those of `staging::create`.
  result<staging*> staging_memory();
  staging* present_staging() { return staging_.get(); } ///< null: never asked for, or given back
  /// The client maps this segment: it is kept to the end.
  void keep_segment(uint32_t number, std::shared_ptr<const arena> memory) {
    segments_[number] = std::move(memory);
  }

  // ---- leases ----

  /// Errors: `busy` when there are as many as the bound allows, or, of the second, when they name so many objects.
  result<void> may_lease() const;
  result<void> may_name(size_t objects) const;

  void add(lease_ptr taken); ///< as its owner
  bool holds(const lease_id& id) const { return leases_.contains(id); }
  lease_ptr lease_of(const lease_id& id) const; ///< null: it neither owns nor reads it
  uint32_t leases() const { return static_cast<uint32_t>(leases_.size()); }
  uint64_t lease_objects() const { return lease_objects_; }

  /// The client is told these places and may read them from now on. What was told before is held already, however often
  /// the client asks. Errors: those of `may_name`; then nothing has changed.
  result<void> read(const lease_ptr& from, const std::vector<object_place>& places,
                    const std::vector<hold_ptr>& holds);

  /// The client has done with all places of the lease that it was told.
  void has_read(const lease_id& id);

  /// How a lease was held that has ended.
  struct ended_lease {
    bool owner = false;
    bool old = false; ///< it was named by `old_leases`
  };
  std::optional<ended_lease> release(const lease_id& id); ///< nothing: it neither owns nor reads it
  /// The client was told places of its objects, and may be reading there.
  bool may_be_reading(const lease_id& id) const;

  /// The owned leases that are older than `after`, each once.
  struct aged {
    std::vector<lease_ptr> old;
    clock::time_point next = clock::time_point::max(); ///< when the next one becomes old
  };
  aged old_leases(clock::time_point now, clock::duration after);

  // ---- the end ----

  /// Gives everything back but the segments, and what a living client may still be reading under its leases. Gives the leases
  /// that it owned: for whoever else it may concern, they have ended.
  std::vector<ended_lease> close();

  /// The client's process has ended: it reads nothing any more.
  void end_readings();
  void drop_segments() { segments_.clear(); }

  /// What is held for reading, counted as often as it is held.
  uint64_t reading_bytes() const;

 private:
  struct held_lease {
    lease_ptr what;
    bool owner = false;
    bool old = false;
    std::vector<hold_ptr> reading; ///< host objects whose places the client was told: it may be reading them
    std::unordered_set<object_id> told; ///< the objects of these places
    uint64_t objects = 0;               ///< that this lease counts against the bound
    uint64_t read = 0;                  ///< of these, those that count for `told`
  };

  bounds most_;
  std::map<space_id, client_space_ptr> spaces_;
  std::map<region_id, client_region_ptr> regions_;
  uint64_t region_bytes_ = 0;
  uint32_t next_region_ = 1;
  std::unique_ptr<staging> staging_;
  std::map<uint32_t, std::shared_ptr<const arena>> segments_;
  std::unordered_map<lease_id, held_lease> leases_;
  uint64_t lease_objects_ = 0;
};

} // namespace terrace::actors
