// The bytes that the tenants of a trust group have in one tier, and the bytes that they may have.
#pragma once

#include "index/resident.hpp"
#include "index/resident_table.hpp"
#include "index/space_registry.hpp"
#include "index/tenant_directory.hpp"
#include "tier/quota/tenant_states.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace terrace {

// Objects that the policy must not name for now, because their tenant has no more than its guaranteed share.

/// The shielded objects of one tenant, in the order in which the policy named them: the least valuable first. They lose
/// the shield in the same order. So a policy that would name them first each time names each of them once, however
/// large the share is. `live` (id) returns the bytes of an object that is still there, or 0.
class tenant_shield {
 public:
  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }

  template <class Live>
  void add(object_id id, Live&& live) {
    if (!in_.insert(id).second)
      return; // its last hold has ended, and then the policy named it again
    if (line_.size() >= sweep_at_)
      sweep(live);
    line_.push_back(id);
  }

  /// Removes the first objects until they have `bytes`. The policy may name them again.
  template <class Live>
  void take(uint64_t bytes, std::vector<object_id>& out, Live&& live) {
    for (uint64_t taken = 0; taken < bytes && !line_.empty(); line_.pop_front()) {
      in_.erase(line_.front());
      if (uint64_t size = live(line_.front()); size != 0) {
        out.push_back(line_.front());
        taken += size;
      }
    }
  }

 private:
  template <class Live>
  void sweep(Live&& live) {
    std::deque<object_id> left;
    for (object_id id : std::exchange(line_, {}))
      if (live(id) != 0)
        left.push_back(id);
      else
        in_.erase(id);
    line_ = std::move(left);
    sweep_at_ = 2 * line_.size() + sweep_min;
  }

  static constexpr size_t sweep_min = 1024;
  std::deque<object_id> line_;
  std::unordered_set<object_id> in_;
  size_t sweep_at_ = sweep_min;
};

/// An extent is charged to the tenant of its object from the reservation until it is freed; `book` charges bytes that a
/// request is about to get. Used and booked bytes of a tenant never exceed its bound, except after the bound was
/// lowered or after a space's tenant became known: `excess` says what it has to give back.
///
/// When a disk brings objects back, their tenant is known only after a client opens their space: `tenant_of` looks
/// again.
///
/// Shares are guaranteed in the order in which tenants came, as far as the tier goes, because a rule may have more
/// tenants than its configuration can know. Used by one thread at a time, except for the board.
class tenant_quotas final : public space_meter {
 public:
  /// `capacity` returns the tier's capacity now. `board` may be null: no metrics.
  tenant_quotas(tier_kind tier, std::shared_ptr<const tenant_directory> directory,
                std::function<uint64_t()> capacity, std::shared_ptr<tenant_states> board = nullptr);

  void took(space_id space, uint64_t bytes) override;
  void gave_back(space_id space, uint64_t bytes) override;

  /// The quotas have changed: assigns every space to its present tenant.
  void refresh();

  /// The tenant of a space that requests use.
  tenant_id tenant_of(space_id space);
  /// Returns the tenant to which objects of the space that are here are charged.
  tenant_id charged(space_id space) const;

  /// Nullopt: no bound.
  std::optional<uint64_t> max_of(tenant_id tenant) const;
  uint64_t used_by(tenant_id tenant) const; ///< includes booked bytes
  uint64_t guaranteed_to(tenant_id tenant);

  enum class room : uint8_t {
    free,  ///< the bytes are below the bound
    full,  ///< possible once the tenant has given something back
    never, ///< the bytes alone exceed the bound
  };
  room room_for(tenant_id tenant, uint64_t bytes) const;
  /// Returns how many bytes the tenant must give up before it may have `bytes` more.
  uint64_t missing_for(tenant_id tenant, uint64_t bytes) const;
  /// Tenants that have more than their bound.
  std::vector<tenant_id> in_excess();

  void book(tenant_id tenant, uint64_t bytes);
  void unbook(tenant_id tenant, uint64_t bytes);

  // ---- shares ----

  /// True if anybody has a guaranteed share.
  bool guarantees() const { return guarantees_; }
  /// True if the tenant may lose `bytes` to others, after it has lost `lost`.
  bool may_lose(tenant_id tenant, uint64_t bytes, uint64_t lost = 0);
  tenant_shield* shield_of(tenant_id tenant);
  /// Returns the bytes that tenants took beyond their shares since the last call: as many may lose their shield.
  std::vector<std::pair<tenant_id, uint64_t>> take_grown() { return std::exchange(grown_, {}); }
  /// Returns the bytes that tenants have beyond their shares although they have shielded objects.
  std::vector<std::pair<tenant_id, uint64_t>> beyond_shares();

  // ---- what is shown ----

  /// Returns "quota NAME allows its tenant N bytes in the tier host".
  std::string describe(tenant_id tenant) const;
  void refused(tenant_id tenant);
  void waiting(tenant_id tenant, bool more);
  /// Compares what spaces and tenants are charged with what their objects have; returns a sentence for each difference.
  std::vector<std::string> check(const table_totals& counted) const;
  /// Returns quotas first, then tenants by rule, at most `tenants_shown_max` in all.
  std::vector<tenant_report> report();

 private:
  struct space_use {
    uint64_t bytes = 0;
    tenant_id tenant{};
    bool known = false;
  };
  struct tenant_use {
    std::string name;
    uint32_t number = 0;
    tier_quota quota;
    uint64_t used = 0, booked = 0;
    uint64_t guaranteed = 0;
    uint64_t waiting = 0, refused = 0;
    tenant_shield shield;
    std::shared_ptr<quota_gauges> shown; ///< null: no metrics

    std::optional<uint64_t> max(uint64_t capacity) const {
      return quota.max ? std::optional(quota.max->bytes_of(capacity)) : std::nullopt;
    }
  };

  void find(space_use& use, space_id space);
  tenant_use* of(tenant_id tenant);
  const tenant_use* of(tenant_id tenant) const;
  tenant_use& enter(tenant_id tenant);
  void forget_if_unused(tenant_id tenant);
  void charge(tenant_id tenant, tenant_use& use, uint64_t bytes);
  void share();
  void share_anew();
  void show_bounds();

  tier_kind tier_;
  std::shared_ptr<const tenant_directory> directory_;
  std::function<uint64_t()> capacity_;
  std::shared_ptr<tenant_states> board_;
  std::unordered_map<uint32_t, space_use> spaces_;
  std::map<tenant_id, tenant_use> tenants_; ///< listed tenants, and those that have something here
  std::vector<tenant_directory::terms> listed_;
  std::vector<std::pair<tenant_id, uint64_t>> grown_;
  uint64_t shared_capacity_ = 0; ///< capacity for which the shares were computed
  bool guarantees_ = false;
  bool may_exceed_ = false; ///< a tenant may have more than its bound
};

} // namespace terrace
