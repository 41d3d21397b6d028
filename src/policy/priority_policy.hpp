// Lowest priority first, and within a priority the least recently used.
#pragma once

#include "policy/entry_marks.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

/// An entry has the priority of the request that accessed it last.
class priority_policy : public leaf_bands {
 public:
  explicit priority_policy(const policy_context& context) : leaf_bands(context, priorities) {}

  void on_insert(entry_index at) override { priority_.set(at, context_.priority); }
  void on_hit(entry_index at, uint32_t) override {
    uint8_t before = priority_.get(at);
    priority_.set(at, context_.priority);
    if (context_.priority < before)
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
