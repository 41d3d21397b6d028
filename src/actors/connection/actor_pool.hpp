// Actors that have done their request and wait for another of the same kind.
#pragma once

#include <caf/actor.hpp>

#include <utility>
#include <vector>

namespace terrace::actors {

/// Beginning an actor costs some microseconds, and so does its end, which wakes CAF's clock on its thread. So a connection
/// keeps those that have answered. One that only it knows ends with it. Belongs to one connection.
class actor_pool {
 public:
  static constexpr size_t kept_max = 32;

  /// The one that was used last, whose memory is in cache; else what `spawn` gives.
  template <class F>
  caf::actor take(F spawn) {
    if (kept_.empty())
      return spawn();
    caf::actor taken = std::move(kept_.back());
    kept_.pop_back();
    return taken;
  }

  /// It has answered and takes another request. More than `kept_max` are not kept.
  void put_back(caf::actor idle) {
    if (kept_.size() < kept_max)
      kept_.push_back(std::move(idle));
  }

 private:
  std::vector<caf::actor> kept_;
};

} // namespace terrace::actors
