// First in, first out, leaves only: hits are ignored.
#pragma once

#include "policy/leaf_tree.hpp"

namespace terrace {

/// For streams without reuse, and as a yardstick. Not for chats or agents: a hot prefix goes as early as a cold one
/// once its last suffix has gone.
class fifo_policy : public eviction_policy {
 public:
  std::string_view name() const override { return "fifo"; }
  void insert(const entry_info& entry, policy_time now) override;
  void hit(entry_key, policy_time) override {}
  void erase(entry_key key) override { tree_.erase(key); }
  std::vector<victim> victims(uint64_t bytes, const evictable_filter& may_leave, policy_time) override {
    return tree_.victims(bytes, may_leave);
  }
  size_t size() const override { return tree_.size(); }
  size_t bytes_per_entry() const override { return leaf_tree::bytes_per_entry(); }

 private:
  leaf_tree tree_;
  uint64_t arrivals_ = 0;
};

} // namespace terrace
