// Most recently used.
#pragma once

#include "policy/leaf_bands.hpp"

namespace terrace {

/// Suits loops over more than fits, and serves as a baseline. It does not suit chats or agents: it evicts the
/// sessions that are about to continue.
class mru_policy : public leaf_bands {
 public:
  explicit mru_policy(const policy_context& context) : leaf_bands(context, 1) {}

  void on_hit(entry_index at, uint32_t) override { rank_fell(at); }

 protected:
  uint32_t rank_of(entry_index at) const override { return ~stamp(at); }
};

} // namespace terrace
