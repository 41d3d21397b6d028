// The policies by a number of each entry: lfu by its count of accesses, priority by the retention that its request asked for.
#pragma once

#include "policy/entry_table.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

// Least frequently used.

/// Counts the accesses during one stay: an arrival counts 1, and the count starts over after a return. Among
/// equals the entry that reached the count first is evicted first. Counts stop at 255. It does not suit
/// changing workloads: entries that were popular once never leave.
class lfu_policy : public leaf_bands {
 public:
  explicit lfu_policy(const policy_context& context) : leaf_bands(context, count_max) {}

  void on_insert(entry_index at) override { uses_.set(at, 1); }
  void on_hit(entry_index at, uint32_t) override {
    if (uint8_t uses = uses_.get(at); uses < count_max)
      uses_.set(at, static_cast<uint8_t>(uses + 1));
  }
  size_t bytes() const override { return leaf_bands::bytes() + uses_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return uses_.get(at) - size_t{1}; }

 private:
  static constexpr uint8_t count_max = 255;
  entry_marks<uint8_t> uses_;
};

/// An entry has the priority of the request that accessed it last.
class priority_policy : public leaf_bands {
 public:
  explicit priority_policy(const policy_context& context) : leaf_bands(context, priorities) {}

  void on_insert(entry_index at) override { priority_.set(at, context_.retention); }
  void on_hit(entry_index at, uint32_t) override {
    uint8_t before = priority_.get(at);
    priority_.set(at, context_.retention);
    if (context_.retention < before)
      rank_fell(at);
  }
  size_t bytes() const override { return leaf_bands::bytes() + priority_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return priority_.get(at); }

 private:
  static constexpr size_t priorities = 8;
  entry_marks<uint8_t> priority_;
};

} // namespace terrace
