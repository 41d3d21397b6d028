// What a trust group knows of the use of its chunks, and who leaves which of its tiers next.
#pragma once

#include "policy/access_history.hpp"
#include "policy/tracked_tier.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// The metadata of all tiers of a trust group: one record for each tracked chunk object, resident or ghost (known, but
/// resident nowhere), the forest of each tier, its order, and its pins. Not thread-safe, no clock, no I/O: it belongs to
/// one policy actor, or to a simulation.
///
/// A use is told once: with `begin_request` for a whole chain in all tiers at once, or, by callers that know no
/// requests, entry by entry with `hit`. Times never go back (an earlier one counts as the latest).
/// Suffix before prefix holds under every policy: only a leaf, an entry without a resident descendant in its tier, is
/// ever named. Every event is O(1) or O(log n); `victims` is so for each entry that it names, however many are pinned.
class eviction_tracker {
 public:
  /// `seed`: of the orders that draw lots. `remember`: keep ghosts even if no order asks for them.
  explicit eviction_tracker(uint64_t seed = 0, bool remember = false);
  eviction_tracker(const eviction_tracker&) = delete;
  eviction_tracker& operator=(const eviction_tracker&) = delete;
  ~eviction_tracker();

  /// Gives the tier an order, or another order: then its residents, pins and links stay, and the new order learns them
  /// from the least recently used on. A tier without one is not tracked. Errors: `bad_request` naming the known policies.
  result<void> set_policy(tier_number tier, std::string_view name);
  std::string_view policy(tier_number tier) const; ///< empty: none

  /// A request for this chain, root first, of whole chunks, whether they are resident or not. Its uses are noted in every
  /// tier where they are, last chunk first. A request over several pools or ranks is one call for each.
  /// The number lives until `end_request`, or until `open_requests_max` younger ones have begun.
  request_number begin_request(std::span<const entry_key> chain, const request_hints& hints, policy_time now);
  void end_request(request_number request, const request_outcome& outcome, policy_time now);

  /// The entry became resident. Is it resident already, this is a hit. `request`: the one that it was stored for, whose
  /// use of it is noted already; without, the arrival of an entry that is resident in no tier is a use.
  void insert(tier_number tier, const entry_info& entry, policy_time now, request_number request = 0);
  /// One use of one resident entry, by a caller that does not tell requests.
  void hit(tier_number tier, entry_key key, policy_time now);
  /// The entry left the tier. The only way out: naming a victim does not remove it.
  void erase(tier_number tier, entry_key key);
  /// Held entries are never named. The caller counts its holds: pinning twice is pinning once. Unknown keys and
  /// entries that are not resident are ignored, here and everywhere.
  void pin(tier_number tier, entry_key key);
  void unpin(tier_number tier, entry_key key);

  /// Names entries, best victims first, until they add up to `bytes` or no more may leave. When the last child of an
  /// entry was named, the entry counts as a leaf for the rest of this call. Removes nothing; what the caller does not
  /// erase is as eligible in the next call as before.
  std::vector<victim> victims(tier_number tier, const victim_query& query, policy_time now);

  /// How many of these, from the first on, the tier should take: entries that are not resident in it, in the order of
  /// their chain; their bytes do not matter. `beats_victim` is for a tier that is full: all are compared with the one that
  /// would leave next. `seen_twice` needs ghosts: without an order that learns, ask `remember` of the constructor.
  size_t admitted(tier_number tier, std::span<const entry_info> entries, admission_rule rule,
                  policy_time now);

  bool resident(tier_number tier, entry_key key) const;
  /// How many leading chunks of a chain are resident in the tier.
  size_t resident_prefix(tier_number tier, std::span<const entry_key> chain) const;

  size_t residents(tier_number tier) const;
  /// All residents, in no order. Parents are left out.
  std::vector<entry_info> list_residents(tier_number tier) const;
  /// The learner; null until an order that learns is set.
  const survival_model* model() const { return history_.model(); }
  /// Of a space alone (request_hints); null while no request of it was heard.
  const survival_model* model_of(uint32_t space) const { return history_.model_of(space); }

  size_t tracked() const { return table_.size(); }
  /// Tracked and resident in no tier. At most `ghosts_per_resident` times the residents, with a learner
  /// `ghosts_per_resident_learning` times (and never less than `ghosts_min`). The one to forget is the best of 16 in turn: the least recently used, or with a learner the least
  /// worth keeping, which holds on to conversations that will go on.
  size_t ghosts() const { return ghosts_; }
  static constexpr size_t ghosts_per_resident = 2, ghosts_per_resident_learning = 4;
  static constexpr size_t ghosts_min = 1024;
  static constexpr size_t open_requests_max = 4096;

  /// All bytes of bookkeeping but those of open requests: 34 for each tracked entry, 4 for each tier, and what the
  /// orders take (docs/policies.md).
  size_t bytes() const;

 private:
  struct open_request;

  tracked_tier* tier(tier_number number) const { return number < tiers_max ? tiers_[number].get() : nullptr; }
  bool alive_somewhere(entry_index at) const;
  bool resident_somewhere(entry_index at) const;
  bool remembers() const;
  void advance(policy_time now, bool anew);
  void use(entry_index at, uint32_t stamp);
  void link(entry_index at, entry_key parent);
  void raise(tracked_tier& t, entry_index at); ///< became alive
  void lower(tracked_tier& t, entry_index at); ///< is alive no more
  void set_ghost(entry_index at);
  void forget(entry_index at);
  void limit_ghosts();

  uint64_t seed_;
  bool remember_;
  access_clock clock_;
  entry_table table_;
  access_history history_{table_, clock_};
  std::vector<entry_index> chain_; ///< of the request that begins
  std::array<std::unique_ptr<tracked_tier>, tiers_max> tiers_;
  size_t ghosts_ = 0;
  entry_index ghost_hand_ = 0;
  uint8_t priority_ = 0;
  uint32_t spared_ = 0;
  request_number last_request_ = 0;
  std::map<request_number, open_request> open_;
};

} // namespace terrace
