// Room in an arena: what its allocator asks of its tier when free space does not serve the requests that wait.
#pragma once

#include <memory>

namespace terrace {

class eviction_round;

/// From an allocator to its tier: make room (tier/eviction_round.hpp). The round is the tier's until it answers.
struct room_request {
  std::shared_ptr<eviction_round> round;
};
/// The answer: the round, done.
struct room_made {
  std::shared_ptr<eviction_round> round;
};
/// From the tier, once after a round in vain: something may leave now.
struct evictable_notice {};

} // namespace terrace
