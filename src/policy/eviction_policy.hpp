// The interface of an eviction policy, which orders the residents of one tier for eviction, and the registry
// of policies.
#pragma once

#include "base/access_clock.hpp"
#include "base/error.hpp"
#include "policy/entry_table.hpp"
#include "policy/prefix_forest.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace terrace {

class access_history;

/// The data that a policy may read; it may also write its own mark `listed` in `forest`. Outlives the policy.
struct policy_context {
  const entry_table& table;
  prefix_forest& forest;
  const access_history& history;
  const access_clock& clock;
  const uint8_t& retention; ///< that of the request whose accesses are being recorded
  const uint32_t& spared;   ///< the tracker skips candidates with this stamp; 0: none
  uint64_t seed = 0;
};

/// The `eviction_tracker` owns the tree, the pins and the records, and notifies the policy of each tier of
/// events. A policy keeps *candidates*: leaves that are not pinned, as announced by `add_candidate`. It may
/// be lazy: a candidate that is accessed, gets a child or is erased may stay in the policy's structures,
/// because the tracker checks `may_leave` for each popped victim and adds an entry again when it becomes
/// evictable again. Each event is O(1) or O(log n), `pop_victim` amortized.
///
/// Not thread-safe. Entries are indexes into `context.table`, valid from `on_insert` until `on_forget`.
class eviction_policy {
 public:
  explicit eviction_policy(const policy_context& context) : context_(context) {}
  eviction_policy(const eviction_policy&) = delete;
  eviction_policy& operator=(const eviction_policy&) = delete;
  virtual ~eviction_policy() = default;

  /// The entry became resident. Its stamp is that of its last access.
  virtual void on_insert(entry_index) {}
  /// A resident entry was accessed; `before` is its previous stamp.
  virtual void on_hit(entry_index, uint32_t before) { (void) before; }
  /// An entry that is tracked but not resident was accessed. `before` is 0 if it was unknown.
  virtual void on_ghost_hit(entry_index, uint32_t before) { (void) before; }
  /// The entry is no longer resident.
  virtual void on_evict(entry_index) {}
  /// The entry is no longer tracked. Its index may be reused.
  virtual void on_forget(entry_index) {}

  /// From now on the entry may be chosen as a victim.
  virtual void add_candidate(entry_index) = 0;

  /// Removes and returns the best candidate, or `no_entry`. The candidate may be outdated; the tracker then
  /// drops it, and adds it again once it is evictable.
  virtual entry_index pop_victim() = 0;

  /// Called after the last popped victim was chosen: true if its parent, which is now a leaf, precedes every
  /// other candidate. Then the parent is chosen without being added as a candidate.
  virtual bool parent_is_next_victim(entry_index parent) {
    (void) parent;
    return false;
  }

  /// Returns how many leading entries of `candidates`, none of them resident, are each worth at least as much
  /// as the next victim.
  virtual size_t beating_victim(std::span<const entry_index> candidates) { return candidates.size(); }

  /// True if the policy learns from entries that are no longer resident.
  virtual bool keeps_ghosts() const { return false; }
  /// True if the policy reads the survival model.
  virtual bool learns() const { return false; }

  /// Every stamp has been replaced by `access_clock::rebased(stamp)`.
  virtual void on_rebase() {}

  /// The memory of the policy itself.
  virtual size_t bytes() const = 0;

 protected:
  uint32_t stamp(entry_index at) const { return context_.table[at].stamp; }

  policy_context context_;
};

/// Creates a policy by name. Errors: `bad_request`, listing the known names.
result<std::unique_ptr<eviction_policy>> make_eviction_policy(std::string_view name,
                                                              const policy_context& context);

std::span<const std::string_view> eviction_policy_names();

/// Error: `bad_request` if the name is unknown.
result<void> check_eviction_policy(std::string_view name);

} // namespace terrace
