// The resources of a client: open spaces, registered regions, staging memory, mapped segments, and leases,
// both its own and those that it reads. All are released with the object.
//
// Pure: no actor, and time is an argument. Used by one thread at a time.
#pragma once

#include "connection/client_state.hpp"
#include "connection/request_values.hpp"
#include "connection/staging.hpp"
#include "group/group_messages.hpp"
#include "index/resident.hpp"
#include "index/token_hasher.hpp"
#include "memory/client_mapping.hpp"
#include "metrics/space_table.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

// Tells a client the locations of a lease's objects, step by step.

// The objects of a lease whose locations a client was told.

/// Keyed by number in the lease (index/chunk_layout.hpp); a later object replaces an earlier one with its
/// number. Grows in blocks, so that no call takes long. Used by one thread at a time.
class sent_locations {
 public:
  bool has(size_t number, object_id id) const {
    size_t at = number / block_objects;
    return at < blocks_.size() && blocks_[at] && (*blocks_[at])[number % block_objects] == id;
  }
  /// Returns false if the object was told already.
  bool add(size_t number, object_id id) {
    size_t at = number / block_objects;
    if (at >= blocks_.size())
      blocks_.resize(at + 1);
    if (!blocks_[at])
      blocks_[at] = std::make_unique<block>();
    return std::exchange((*blocks_[at])[number % block_objects], id) != id;
  }

 private:
  static constexpr size_t block_objects = 512;
  using block = std::array<object_id, block_objects>;
  std::vector<std::unique_ptr<block>> blocks_;
};

/// `client_holdings::read_some` advances it. Used by one thread at a time.
struct lease_reading {
  static constexpr size_t step_objects = 4'096; ///< one step takes well below a millisecond

  lease_ptr from;
  std::span<const object_place> places; ///< places in host memory; they outlive the reading
  std::vector<hold_ptr> holds;          ///< holds that keep the objects in place
  std::function<size_t(size_t)> number; ///< number in the lease of the n-th place

  // Stage of `read_some`.
  enum class stage : uint8_t { begins, counting, telling, told };
  stage now = stage::begins;
  size_t done = 0;                      ///< places that this stage has processed
  uint64_t fresh = 0;                   ///< places that had not been told before
  uint64_t added = 0;                   ///< the part of `fresh` that has been told
  uint64_t bytes = 0;                   ///< physical bytes of all places
  std::shared_ptr<sent_locations> told; ///< places of the lease that the client was told
};

/// A space as this connection opened it.
struct client_space {
  space_ptr space;
  std::shared_ptr<token_hasher> hasher;
  uint16_t rank = 0;
  request_defaults defaults; ///< defaults that this client declares
  std::shared_ptr<metrics::space_probe> probe;
  /// Presence of its rank while the connection has the space open.
  std::unique_ptr<rank_presence::member> presence;
};
using client_space_ptr = std::shared_ptr<const client_space>;
using client_region_ptr = std::shared_ptr<const client_region>;

/// How many objects a lease counts against `lease_objects`; the number of tiers that hold them does not
/// matter.
size_t objects_of(const lease& taken);

/// The spaces that a client has open.
class client_spaces {
 public:
  explicit client_spaces(uint32_t spaces_max) : spaces_max_(spaces_max) {}

  /// A space that is already open stays as it is. Errors: `bad_request` if it was opened with another rank or
  /// other defaults, because requests rely on them; `busy` at the limit.
  result<void> add(std::shared_ptr<client_space> opened);
  client_space_ptr find(space_id id) const; ///< null: this connection has not opened it
  /// Finds a space by its number on the wire. Error: `not_found`.
  result<client_space_ptr> opened(uint32_t number) const;
  /// Returns the client's rank in a space in which it reads under a lease, perhaps under that of another
  /// connection. Error: `bad_request` if it has not opened the space, because each rank has its own objects.
  result<uint16_t> rank_in(const opened_space& in) const;
  /// Requests in flight keep the space until they are done.
  void close(space_id id) { spaces_.erase(id); }
  void close_all() { spaces_.clear(); }

 private:
  uint32_t spaces_max_;
  std::map<space_id, client_space_ptr> spaces_;
};

/// The regions that a client has registered.
class client_regions {
 public:
  explicit client_regions(uint32_t regions_max) : regions_max_(regions_max) {}

  /// Errors: `busy` at the limit.
  result<region_id> add(client_region_ptr region);
  /// Finds a region by its number on the wire. Error: `not_found`.
  result<client_region_ptr> registered(uint32_t number) const;
  /// Transfers in flight keep the region until they are done. Returns null if there is none.
  client_region_ptr remove(region_id id);
  /// Returns whether the region is still registered.
  bool has(const client_region& region) const;
  uint32_t count() const { return static_cast<uint32_t>(regions_.size()); }
  uint64_t bytes() const { return bytes_; }
  uint64_t counted_bytes() const; ///< counts `bytes` again, for checks

  /// Releases everything except events that a living client may have open.
  void close();
  /// Whether such events are kept.
  bool keeps_events() const { return !opened_pages_.empty(); }
  /// The client has closed its events, or has ended.
  void events_closed();

 private:
  friend struct damaged_holdings; ///< tests damage it

  uint32_t regions_max_;
  std::map<region_id, client_region_ptr> regions_;
  uint64_t bytes_ = 0;
  uint32_t next_ = 1;
  /// Set after `close`: pages of events that the client may have open.
  std::vector<device_memory_ptr> opened_pages_;
};

class client_holdings {
 public:
  using clock = std::chrono::steady_clock;

  struct bounds {
    uint64_t staging_bytes = 0;
    uint32_t reservations = 0;
    uint32_t spaces = 0;
    uint32_t regions = 0;
    uint32_t leases = 0;
    uint64_t lease_objects = 0; ///< limit for all leases together; an object counts once per lease
  };

  /// `teardown` releases staging memory. `ends` ends leases on many objects. If one is null, the holder of
  /// the last reference does that work.
  explicit client_holdings(const bounds& most, teardown_ptr teardown = nullptr, teardown_ptr ends = nullptr)
      : most_(most), teardown_(std::move(teardown)), ends_(std::move(ends)), spaces_(most.spaces),
        regions_(most.regions) {}
  client_holdings(const client_holdings&) = delete;
  client_holdings& operator=(const client_holdings&) = delete;
  ~client_holdings() {
    end_readings();
    end(std::move(leases_), lease_objects_);
  }

  client_spaces& spaces() { return spaces_; }
  /// Errors: `not_found`; `busy` while it has leases or reservations, which need its rank.
  result<void> close_space(space_id id);
  client_regions& regions() { return regions_; }
  const client_regions& regions() const { return regions_; }

  // ---- staging memory and segments ----

  /// Created on first use. Errors: those of `staging::create`.
  result<staging*> staging_memory();
  staging* present_staging() { return staging_.get(); } ///< null: it was never used, or has been released
  /// The client maps this segment, so it is kept until the client ends.
  void keep_segment(uint32_t number, std::shared_ptr<const arena> memory) {
    segments_[number] = std::move(memory);
  }

  // ---- leases ----

  /// Errors: `busy`; `may_lease` at the limit of leases, `may_name` at the limit of their objects.
  result<void> may_lease() const;
  result<void> may_name(size_t objects) const;

  void add(lease_ptr taken); ///< adds the lease as its owner
  bool holds(const lease_id& id) const { return leases_.contains(id); }
  lease_ptr lease_of(const lease_id& id) const; ///< null: the client neither owns nor reads it
  uint32_t leases() const { return static_cast<uint32_t>(leases_.size()); }
  uint64_t lease_objects() const { return lease_objects_; }

  /// Does one step of a read; returns true if there is another one. After the last step the client may read
  /// these locations: send them at once. Locations returned before are already held and not counted again.
  /// Errors: those of `may_name`, upon which nothing has changed; `gone` if the lease was released meanwhile
  /// or the client no longer uses its places.
  result<bool> read_some(lease_reading& work);

  /// The client no longer uses the places of the lease that it was told. Returns true if they are so many
  /// that the thread of `ends` releases them later.
  bool has_read(const lease_id& id);

  /// How an ended lease was held.
  struct ended_lease {
    bool owner = false;
    bool old = false; ///< `old_leases` had returned it
  };
  std::optional<ended_lease> release(const lease_id& id); ///< nullopt: the client neither owned nor read it
  /// A lease that an operator has revoked. This client can no longer use it. What the client may be reading
  /// in place stays until it releases the lease or ends.
  struct revoked_lease {
    ended_lease ended;
    uint64_t reading_bytes = 0; ///< physical bytes that stay
  };
  std::optional<revoked_lease>
  revoke(const lease_id& id); ///< nullopt: the client neither owned nor read it, or it was revoked before

  /// True if the lease has so many objects that the thread of `ends` ends it after `release` has returned.
  bool ends_elsewhere(const lease_id& id) const;
  /// True if the client received locations of the lease's objects and may be reading there.
  bool may_be_reading(const lease_id& id) const;

  /// The owned leases older than `after`. Each is returned once.
  struct aged {
    std::vector<lease_ptr> old;
    clock::time_point next = clock::time_point::max(); ///< time when the next lease becomes old
  };
  aged old_leases(clock::time_point now, clock::duration after);

  /// Writes what status shows of the holdings.
  void show(client_state& shown) const;

  // ---- checks ----

  /// Recounts the holdings and returns a sentence for each difference from the kept sums. Looks at all leases
  /// and reservations.
  std::vector<std::string> check() const;
  std::vector<lease_ptr> kept_leases() const; ///< leases owned or read
  std::vector<hold_ptr> readings() const;
  std::vector<lease_id> owned() const;

  // ---- the end ----

  /// Releases everything except the segments and what a living client may still use: what it reads under its
  /// leases, and events that it has opened. Returns the leases that it owned, which have ended for other
  /// readers too.
  std::vector<ended_lease> close();

  /// The client's process has ended, or has said that it no longer uses any of this.
  void client_ended();
  void drop_segments() { segments_.clear(); }

  /// Bytes held for reading, counted as often as they are held.
  uint64_t reading_bytes() const { return reading_bytes_; }
  /// The part of `reading_bytes` that belongs to revoked leases.
  uint64_t revoked_bytes() const { return revoked_bytes_; }

 private:
  friend struct damaged_holdings; ///< tests damage it
  struct held_lease {
    lease_ptr lease; ///< null: it was revoked, and the client may be reading
    bool owner = false;
    bool old = false;
    /// Holds on host objects whose locations the client received and may be reading.
    std::vector<hold_ptr> reading;
    std::shared_ptr<sent_locations> told; ///< the objects at these locations; null: none
    uint64_t objects = 0;                 ///< objects counted against the limit for this lease
    uint64_t read = 0;                    ///< the part of `objects` that counts for `told`
    uint64_t reading_bytes = 0;           ///< physical bytes at these locations
  };
  using lease_map = std::unordered_map<lease_id, held_lease>;

  void count(lease_reading& work) const;
  result<void> commit(lease_reading& work);
  void tell(lease_reading& work, held_lease& held);
  void stop_reading(held_lease& held);
  void end_readings();
  /// Destroys the holder of that many objects.
  template <class T>
  void end(T value, uint64_t objects) {
    if (ends_ && objects >= object_hold::many_places)
      ends_->destroy(std::move(value));
  }

  bounds most_;
  teardown_ptr teardown_;
  teardown_ptr ends_;
  client_spaces spaces_;
  client_regions regions_;
  std::unique_ptr<staging> staging_;
  std::map<uint32_t, std::shared_ptr<const arena>> segments_;
  lease_map leases_;
  uint64_t lease_objects_ = 0;
  uint64_t reading_bytes_ = 0;
  uint64_t revoked_bytes_ = 0;
};

} // namespace terrace
