// Tracks the accesses to all chunks of a trust group and chooses the eviction victims of each tier.
#pragma once

#include "policy/access_history.hpp"
#include "policy/open_requests.hpp"
#include "policy/survival_model.hpp"
#include "policy/tracked_tier.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// The metadata of all tiers of a trust group: one record per tracked chunk object, resident or ghost
/// (tracked, but resident in no tier), and per tier its prefix forest, policy and pins. Not thread-safe, no
/// clock, no I/O: it is owned by one policy actor or by a simulation.
///
/// An access is reported once: with `begin_request` for a whole chain in all tiers, or, by callers without
/// requests, entry by entry with `hit`. Times do not go back (an earlier time counts as the latest one).
/// Under every policy suffixes leave before prefixes: only a leaf, an entry without resident descendants in
/// its tier, is ever chosen. Every event is O(1) or O(log n); so is `victims` per chosen entry, however many
/// are pinned.
class eviction_tracker {
 public:
  /// `seed` is used by policies that sample. `remember` keeps ghosts even if no policy needs them.
  explicit eviction_tracker(uint64_t seed = 0, bool remember = false);
  eviction_tracker(const eviction_tracker&) = delete;
  eviction_tracker& operator=(const eviction_tracker&) = delete;
  ~eviction_tracker();

  /// Sets or replaces the policy of a tier. On replacement residents, pins and links stay; the new policy
  /// receives the residents from the least recently accessed on. A tier without a policy is not tracked.
  /// Errors: `bad_request`, listing the known policies.
  result<void> set_policy(tier_number tier, std::string_view name);
  std::string_view policy(tier_number tier) const; ///< empty: none

  /// Begins a request for a chain of whole chunks, root first, resident or not. Its accesses are recorded in
  /// every tier, last chunk first. A request over several pools or ranks takes one call for each. The number
  /// is valid until `end_request`, or until `open_requests_max` later requests have begun.
  request_number begin_request(std::span<const entry_key> chain, const request_hints& hints, policy_time now);
  void end_request(request_number request, const request_outcome& outcome, policy_time now);

  /// Does the same for a long chain, in parts between which other events may be applied (open_requests.hpp): call
  /// `begin_long_request`, then `find_part` for the whole chain, root first, then `use_part` for the whole chain, in
  /// parts from its end to its root. Each part is passed in the order of the chain, root first.
  long_request begin_long_request(const request_hints& hints, policy_time now);
  void find_part(long_request& request, std::span<const entry_key> part) const;
  void use_part(long_request& request, std::span<const entry_key> part, policy_time now);

  /// Call before many calls with these keys: it loads everything they read into the cache together.
  void expect(std::span<const entry_key> keys) const { table_.fetch(keys); }

  /// Call before so many entries are tracked: it makes their buckets, at most `buckets_max` a call. Returns false when all are
  /// there.
  bool reserve(size_t entries, size_t buckets_max) { return table_.reserve(entries, buckets_max); }

  /// The entry became resident; if it already is, this is a hit. `request` is the request for which it is stored, whose
  /// access is already recorded. Without a request, inserting an entry that is resident in no tier counts as an access.
  void insert(tier_number tier, const entry_info& entry, policy_time now, request_number request = 0);
  /// Records one access to a resident entry, for callers without requests, and to those before it in its chain:
  /// `entries` in all, of which those that are not resident are left out.
  void hit(tier_number tier, entry_key key, policy_time now, size_t entries = 1);
  /// The entry left the tier. Choosing a victim does not remove it; only this does.
  void erase(tier_number tier, entry_key key);
  /// The entry left the tier because of an eviction; the observer is told.
  void evict(tier_number tier, entry_key key);
  /// Pinned entries are never chosen. Pins do not nest: the caller counts its holds. Unknown keys and entries
  /// that are not resident are ignored, here and everywhere.
  void pin(tier_number tier, entry_key key);
  void unpin(tier_number tier, entry_key key);

  /// Chooses entries, best victims first, until they add up to `bytes` or none is left. Once the last child
  /// of an entry is chosen, the entry counts as a leaf for the rest of this call. Removes nothing; entries
  /// that the caller does not erase are eligible again in the next call.
  std::vector<victim> victims(tier_number tier, const victim_query& query, policy_time now);

  /// Returns how many leading entries the tier should admit. `entries` are not resident in it and in chain
  /// order; their sizes do not matter. `beats_victim` is for a full tier: each entry is compared with the
  /// next victim. `seen_twice` needs ghosts: without a policy that learns, construct with `remember`.
  size_t admitted(tier_number tier, std::span<const entry_info> entries, admission_rule rule,
                  policy_time now);

  /// `observer` must outlive the tracker or its own replacement; null: none.
  void set_observer(age_observer* observer) { observer_ = observer; }

  bool resident(tier_number tier, entry_key key) const;
  bool pinned(tier_number tier, entry_key key) const;

  size_t residents(tier_number tier) const;
  /// Lists all residents in no particular order. Parents are left empty.
  std::vector<entry_info> list_residents(tier_number tier) const;
  /// The survival model; null until a policy that learns is set.
  const survival_model* model() const { return history_.model(); }
  /// The model of one space (request_hints); null before its first request.
  const survival_model* model_of(uint32_t space) const { return history_.model_of(space); }

  size_t tracked() const { return table_.size(); }
  /// The number of entries that are tracked but resident in no tier. Limited to `ghosts_per_resident` times
  /// the residents, with a learning policy to `ghosts_per_resident_learning` times, and never below
  /// `ghosts_min`. To stay within the limit, the tracker examines the next 16 ghosts and forgets the least
  /// recently accessed one, or, with a learning policy, the one of least value, which keeps conversations
  /// that are likely to continue.
  size_t ghosts() const { return ghosts_; }
  static constexpr size_t ghosts_per_resident = 2, ghosts_per_resident_learning = 4;
  static constexpr size_t ghosts_min = 1024;
  static constexpr size_t open_requests_max = open_requests::requests_max;
  /// When a long request ends, its ending is recorded for at most this many of its entries.
  static constexpr size_t answered_entries_max = 16'384;

  /// Memory of all metadata except open requests: 34 bytes per tracked entry, 4 per tier, and the memory of
  /// the policies (docs/policies.md).
  size_t bytes() const;

 private:
  tracked_tier* tier(tier_number number) const { return number < tiers_max ? tiers_[number].get() : nullptr; }
  bool alive_somewhere(entry_index at) const;
  bool resident_somewhere(entry_index at) const;
  bool remembers() const;
  void advance(policy_time now, bool anew);
  entry_index find_told(entry_key key);
  entry_index add_ghost(entry_key key);
  void use(std::span<const entry_index> entries, uint32_t stamp);
  void link(entry_index at, entry_key parent);
  void link_gap(const open_request& request, entry_key missing);
  void raise(tracked_tier& t, entry_index at); ///< the entry became alive
  void lower(tracked_tier& t, entry_index at); ///< the entry is no longer alive
  void set_ghost(entry_index at);
  void forget(entry_index at);
  void limit_ghosts();

  uint64_t seed_;
  bool remember_;
  access_clock clock_;
  entry_table table_;
  access_history history_{table_, clock_};
  entry_index told_ = no_entry;    ///< the last entry that was reported: the next one is probably beside it
  std::vector<entry_index> chain_; ///< the chain of the request that is being registered
  std::vector<entry_index> used_;  ///< the entries that are being accessed, in that order
  std::array<std::unique_ptr<tracked_tier>, tiers_max> tiers_;
  size_t ghosts_ = 0;
  entry_index ghost_hand_ = 0;
  uint8_t retention_ = 0;
  uint32_t spared_ = 0;
  age_observer* observer_ = nullptr;
  open_requests open_;
};

} // namespace terrace
