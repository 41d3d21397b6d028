// The interface of every eviction policy: the order in which residents of one tier leave.
#pragma once

#include "base/error.hpp"
#include "base/object_key.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// Nanoseconds of a monotonic clock; passed in, for policies know no clock.
using policy_time = uint64_t;

struct entry_info {
  entry_key key;
  entry_key parent;   ///< the object of the previous chunk of the same chain; empty for the first chunk
  uint64_t bytes = 0; ///< physical bytes that the entry's eviction frees
};

struct victim {
  entry_key key;
  uint64_t bytes = 0;
};

/// Says of a resident entry whether it may leave now (it is not leased, pinned or referenced).
using evictable_filter = std::function<bool(entry_key)>;

/// Suffix before prefix holds under every policy: only a leaf, an entry without a resident child in this tier, is ever
/// named (`leaf_tree` does the counting for all policies). Not thread-safe: it belongs to one policy actor.
/// Every event is O(1) or O(log n).
class eviction_policy {
 public:
  virtual ~eviction_policy() = default;

  virtual std::string_view name() const = 0;

  /// The entry became resident. Known already: counts as a hit.
  virtual void insert(const entry_info& entry, policy_time now) = 0;

  /// The entry was used. A caller notes a chain's entries last chunk first. Unknown keys are ignored.
  virtual void hit(entry_key key, policy_time now) = 0;

  /// The entry left the tier. The only way out: naming a victim does not remove it. Unknown keys are ignored.
  virtual void erase(entry_key key) = 0;

  /// Names entries, best victims first, until they add up to `bytes` or no more may leave. When the last child of an
  /// entry was named, the entry counts as a leaf for the rest of this call. Changes nothing.
  virtual std::vector<victim> victims(uint64_t bytes, const evictable_filter& may_leave, policy_time now) = 0;

  virtual size_t size() const = 0;

  /// Bytes of bookkeeping for each entry, as documented in docs/policies.md.
  virtual size_t bytes_per_entry() const = 0;
};

/// The registry: `lru`, `fifo`. Errors: `bad_request` naming the known ones.
result<std::unique_ptr<eviction_policy>> make_eviction_policy(std::string_view name);

std::span<const std::string_view> eviction_policy_names();

} // namespace terrace
