// Least recently used, leaves only.
#pragma once

#include "policy/leaf_tree.hpp"

namespace terrace {

/// Ranks are a count of uses, not the clock, so that entries noted in one batch keep their order: callers note a chain
/// last chunk first, and its prefix is the youngest.
class lru_policy : public eviction_policy {
 public:
  std::string_view name() const override { return "lru"; }
  void insert(const entry_info& entry, policy_time now) override;
  void hit(entry_key key, policy_time now) override;
  void erase(entry_key key) override { tree_.erase(key); }
  std::vector<victim> victims(uint64_t bytes, const evictable_filter& may_leave, policy_time) override {
    return tree_.victims(bytes, may_leave);
  }
  size_t size() const override { return tree_.size(); }
  size_t bytes_per_entry() const override { return leaf_tree::bytes_per_entry(); }

 private:
  leaf_tree tree_;
  uint64_t uses_ = 0;
};

} // namespace terrace
