// Room in an arena: an allocator asks its tier for it when free space does not satisfy the waiting requests.
#pragma once

#include <memory>

namespace terrace {

class eviction_round;

/// An allocator asks its tier to make room (tier/space/eviction_round.hpp). The tier owns the round until it answers.
struct room_request {
  std::shared_ptr<eviction_round> round;
};
/// The answer has the completed round.
struct room_made {
  std::shared_ptr<eviction_round> round;
};
/// The tier sends it once after a failed round: something became evictable.
struct evictable_notice {};

} // namespace terrace
