// The interface of an eviction policy: in which order the residents of one tier leave. And the registry.
#pragma once

#include "base/error.hpp"
#include "policy/access_clock.hpp"
#include "policy/entry_table.hpp"
#include "policy/prefix_forest.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace terrace {

class access_history;

/// What an order may read (and, in `forest`, its own mark `listed`). Outlives it.
struct policy_context {
  const entry_table& table;
  prefix_forest& forest;
  const access_history& history;
  const access_clock& clock;
  const uint8_t& priority; ///< of the request whose uses are noted now
  const uint32_t& spared;  ///< the tracker passes over candidates with this stamp; 0: none
  uint64_t seed = 0;
};

/// The `eviction_tracker` owns the tree, the pins and the records, and tells the order of each tier what happens. An order
/// keeps *candidates*: entries that were exposed, which is to say that they became leaves that nobody holds. It may be
/// lazy: a candidate that is used, gets a child or is erased may stay where it is, for the tracker asks `may_leave` about
/// each one picked, and exposes again what returns. Events are O(1) or O(log n), `pick` so in the mean.
///
/// Not thread-safe. Entries are places in `context.table`, valid from `entered` until `forgotten`.
class eviction_policy {
 public:
  explicit eviction_policy(const policy_context& context) : context_(context) {}
  eviction_policy(const eviction_policy&) = delete;
  eviction_policy& operator=(const eviction_policy&) = delete;
  virtual ~eviction_policy() = default;

  /// Became resident. Its stamp is that of its last use.
  virtual void on_insert(entry_index) {}
  /// Was used while resident; its stamp is new, and was `before`.
  virtual void on_hit(entry_index, uint32_t before) { (void) before; }
  /// The same while known and not resident. `before` is 0 for one that was unknown.
  virtual void on_ghost_hit(entry_index, uint32_t before) { (void) before; }
  /// Is no longer resident.
  virtual void on_evict(entry_index) {}
  /// Is no longer known at all. Its place may be given to another.
  virtual void on_forget(entry_index) {}

  /// May be named from now on.
  virtual void add_candidate(entry_index) = 0;

  /// Takes the best candidate out, or `no_entry`. It may be out of date; then it is exposed again when it may leave again.
  virtual entry_index pop_victim() = 0;

  /// After `picked` was named: whether its parent, now a leaf, should go before every other candidate. Saves exposing it.
  virtual bool follows(entry_index parent) {
    (void) parent;
    return false;
  }

  /// How many of these, from the first on, are each worth no less than what would leave for them. They are not resident.
  virtual size_t beating_victim(std::span<const entry_index> candidates) { return candidates.size(); }

  /// Whether it learns from entries that are no longer resident.
  virtual bool keeps_ghosts() const { return false; }
  /// Whether it reads the learned model.
  virtual bool learns() const { return false; }

  /// Every stamp became `access_clock::rebased(stamp)`.
  virtual void on_rebase() {}

  /// Bytes of its own, all of them.
  virtual size_t bytes() const = 0;

 protected:
  uint32_t stamp(entry_index at) const { return context_.table[at].stamp; }

  policy_context context_;
};

/// The registry. Errors: `bad_request` naming the known ones.
result<std::unique_ptr<eviction_policy>> make_eviction_policy(std::string_view name,
                                                              const policy_context& context);

std::span<const std::string_view> eviction_policy_names();

/// The error of an unknown name.
result<void> check_eviction_policy(std::string_view name);

} // namespace terrace
