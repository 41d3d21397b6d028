// Room in an arena: the request of an allocator to its tier when free space does not satisfy the waiting
// requests.
#pragma once

#include <memory>

namespace terrace {

class eviction_round;

/// From an allocator to its tier: make room (tier/space/eviction_round.hpp). The tier owns the round until it
/// answers.
struct room_request {
  std::shared_ptr<eviction_round> round;
};
/// The answer: the completed round.
struct room_made {
  std::shared_ptr<eviction_round> round;
};
/// From the tier, once after a failed round: something became evictable.
struct evictable_notice {};

} // namespace terrace
