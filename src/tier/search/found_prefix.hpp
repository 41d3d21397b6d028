// A prefix that was found in the tiers of a trust group, and the objects of it that a lease holds.
//
// Pure: used by one thread at a time. A prefix_search makes it.
#pragma once

#include "base/tier_properties.hpp"
#include "index/prefix_plan.hpp"
#include "index/space_registry.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/search/lease_cut.hpp"
#include "tier/search/lease_ledger.hpp"
#include "tier/search/recompute_choice.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace terrace {

/// Describes the search.
struct prefix_subject {
  space_ptr space;
  plan_request plan;
  bool hold = false; ///< hold the objects that are found
  bool note_access =
      false; ///< holding is an access, unless an inference was reported; a probe without hold is no access
  bool counts = true; ///< the tiers count hits and misses
};

/// The objects that one tier has.
struct tier_share {
  tier_kind tier = nowhere;
  object_bitmap present;
  hold_ptr held;           ///< null: nothing
  uint64_t held_bytes = 0; ///< bytes of the tier that anybody held when these were held
};

/// The amounts that leases may hold.
struct lease_room {
  ledger_ptr leases;
  account_ptr account; ///< account of the connection; null: a new one
  uint64_t host_bytes = 0;
  std::array<uint64_t, tier_kinds> below_bytes{}; ///< capacities of tiers below, by tier_kind
};

class found_prefix {
 public:
  /// `tiers` were searched, in the order of tier_list.hpp. `probed` is the number of objects that were
  /// probed; nothing is known of those behind them.
  found_prefix(prefix_subject subject, std::vector<tier_share> tiers, size_t probed);

  found_prefix(const found_prefix&) = delete;
  found_prefix& operator=(const found_prefix&) = delete;

  /// Does a step of the plan, before anything else. Returns true if there is another one.
  bool plan_some() { return planner_.step(); }
  const prefix_plan& plan() const { return planner_.plan(); } ///< shorter, if a lease cannot hold all of it
  prefix_plan take_plan() {                                   ///< call once, last
    prefix_plan taken = planner_.take();
    taken.patience_s = patience_s_;
    return taken;
  }

  /// Returns, for each searched tier, some of its objects in chunks behind the prefix of which a rank is
  /// missing that has left; nullopt: that was all. Only for a search that holds the objects that it finds;
  /// before `lease_some`. Precondition: all objects of all tiers could be found.
  std::optional<std::vector<discard_notice>> next_unusable();

  /// Does a step of leaving out chunks that the client has sooner if it computes them (recompute_choice.hpp).
  /// Returns true if there is another one. Call before `lease_some`.
  bool leave_some(const recompute_terms& terms);
  uint32_t recompute_chunks() const { return recompute_chunks_; } ///< chunks that were left out

  /// Objects that are counted or charged in a step, about 200 us.
  static constexpr size_t step_objects = 2048;
  /// Objects that are only looked at in a step, or released.
  static constexpr size_t seen_objects = 8 * step_objects, released_objects = 4 * step_objects;

  /// Does a step of a lease on the prefix. Returns true if there is another one. Releases objects that the prefix does
  /// not need. Objects that a lease may not hold in host memory are held below; if they are not there, they shorten the
  /// prefix, and so do objects that it may not hold below either. The rest is charged to the account.
  bool lease_some(const lease_room& room);
  bool shortened() const { return shortened_; }       ///< more is present, but the lease could not hold it
  uint64_t held_bytes() const { return held_bytes_; } ///< physical bytes that the lease holds in all tiers

  /// Returns, for each searched tier, some of the accesses that probes did not record, because a chain is
  /// recorded from its end; nullopt: that was all. Call after `lease_some`, before `take_holds`.
  std::optional<std::vector<access_notice>> next_accesses();

  /// Returns the holds; call once.
  tier_holds take_holds();

 private:
  steps leave(recompute_terms terms);
  steps lease(lease_room room);
  steps cut_to(size_t chunks);
  steps keep_found();
  steps release_unneeded();
  bool needed(size_t object) const;
  steps sum_below();
  steps release_copies(tier_share& share, uint64_t& bytes);
  steps cut_below(const lease_room& room);
  steps charge_below();
  bool holds_in_host() const;
  bool all_in_host() const;
  steps lease_in_host(const lease_room& room);
  steps count(const lease_room& room);
  steps claim(const lease_room& room);
  leased_prefix in_host();
  steps cut_to_fit(leased_prefix prefix);

  prefix_subject of_;
  size_t per_chunk_; ///< objects per chunk
  size_t probed_;
  std::vector<tier_share> shares_;
  prefix_planner planner_;
  bool shortened_ = false;
  bool shortened_below_ = false; ///< it holds less of a tier below than was found there

  account_ptr account_;
  std::vector<bool> trailing_;  ///< one per object of a chunk, in a space with trailing pools
  size_t unusable_from_ = 0;    ///< number of the next chunk to look at
  size_t accessed_ = 0;         ///< objects, counted again for states
  size_t absent_ = 0;           ///< counted objects that are not in host memory
  std::vector<uint16_t> pools_; ///< pools of the objects of a chunk
  struct sum {
    uint64_t needed = 0, unneeded = 0; ///< bytes
  };
  std::vector<sum> below_;   ///< parallel to the shares: sums of those below, as far as they are summed
  std::vector<bool> leased_; ///< parallel to the host objects, as far as they are counted: leased by anybody
  uint64_t added_bytes_ = 0; ///< bytes of those that are not: the lease adds them
  uint64_t held_bytes_ = 0;
  std::optional<lease_account::claim> claimed_;
  double patience_s_ = 0;
  uint32_t recompute_chunks_ = 0;
  std::optional<steps> leaving_, leasing_; ///< declared last, because they refer to the others
};

/// The answer to a lookup.
struct lookup_answer {
  error failure;
  prefix_plan plan;
  tier_holds held;         ///< holds on the found chunks, when asked for
  bool shortened = false;  ///< more is present, but the lease could not hold it
  uint64_t held_bytes = 0; ///< physical bytes of `held`
  /// Chunks behind those of the plan that are present, but that the client has sooner if it computes them.
  uint32_t recompute_chunks = 0;
  /// Chunks behind those of the plan that a remote store has, and that had not come when the time to bring them was over.
  uint32_t pending_chunks = 0;
  /// Chunks of the plan that came to host memory for this lookup, by tier_kind of the remote tier that had them.
  std::array<uint32_t, tier_kinds> brought{};
  uint32_t brought_chunks() const { return std::accumulate(brought.begin(), brought.end(), uint32_t{0}); }
};

} // namespace terrace
