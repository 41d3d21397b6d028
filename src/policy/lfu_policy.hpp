// Least frequently used.
#pragma once

#include "policy/entry_marks.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

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

} // namespace terrace
