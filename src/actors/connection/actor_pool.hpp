// Idle actors that can be reused for another request of the same kind.
#pragma once

#include <caf/actor.hpp>

#include <utility>
#include <vector>

namespace terrace::actors {

/// Starting an actor takes a few microseconds, and so does its end, which wakes CAF's clock thread. So a
/// connection keeps actors that have answered. They end with it. Belongs to one connection.
class actor_pool {
 public:
  static constexpr size_t kept_max = 32;

  /// Returns the most recently used one, whose memory is in cache, otherwise the result of `spawn`.
  template <class F>
  caf::actor take(F spawn) {
    if (kept_.empty())
      return spawn();
    caf::actor taken = std::move(kept_.back());
    kept_.pop_back();
    return taken;
  }

  /// Stores an actor that has answered. At most `kept_max` are kept.
  void put_back(caf::actor idle) {
    if (kept_.size() < kept_max)
      kept_.push_back(std::move(idle));
  }

 private:
  std::vector<caf::actor> kept_;
};

} // namespace terrace::actors
