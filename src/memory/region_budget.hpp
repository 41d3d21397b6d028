// Bounds the clients' memory that the daemon maps: per connection, per trust group and in total. Without
// bounds a few sparse memfds use up the address space, and then nobody gets memory.
#pragma once

#include "base/error.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace terrace {

class region_budget;
using region_budget_ptr = std::shared_ptr<region_budget>;

/// The share of a region in its budget and in all budgets above it. Its end gives the share back, on any
/// thread. A region keeps it until it is unmapped.
class region_charge {
 public:
  region_charge() = default;
  region_charge(region_charge&& other) noexcept
      : from_(std::move(other.from_)), bytes_(std::exchange(other.bytes_, 0)) {}
  region_charge& operator=(region_charge&& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~region_charge();

 private:
  friend class region_budget;
  region_charge(region_budget_ptr from, uint64_t bytes) : from_(std::move(from)), bytes_(bytes) {}

  region_budget_ptr from_;
  uint64_t bytes_ = 0;
};

/// Safe on any thread.
class region_budget : public std::enable_shared_from_this<region_budget> {
 public:
  struct bound {
    std::string owner; ///< named in errors, such as "the connection"
    uint64_t bytes_max = 0;
    /// The number of mappings is limited too (vm.max_map_count, 65,530 by default, which includes the
    /// daemon's own memory).
    uint32_t regions_max = UINT32_MAX;
  };

  /// `above` is the budget of which this one is a part; null: none.
  static region_budget_ptr make(bound most, region_budget_ptr above = nullptr);

  /// Errors: `bad_request` if a region of this size can never fit, `busy` if it does not fit beside the
  /// present ones; both name the bound.
  result<region_charge> take(uint64_t bytes);

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint32_t regions() const { return regions_.load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return most_.bytes_max; }

 private:
  friend class region_charge;
  region_budget(bound most, region_budget_ptr above) : most_(std::move(most)), above_(std::move(above)) {}
  result<void> may_ever_take(uint64_t bytes) const;
  result<void> take_here(uint64_t bytes);
  void give_back(uint64_t bytes);

  const bound most_;
  const region_budget_ptr above_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint32_t> regions_{0};
};

} // namespace terrace
