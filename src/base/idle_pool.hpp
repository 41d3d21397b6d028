// Idle things that can be used again for a request of the same kind.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace terrace {

/// Handles of things that are expensive to start and to end. Used by one thread at a time.
template <class Handle>
class idle_pool {
 public:
  static constexpr size_t kept_max = 32;

  /// Returns the most recently used one, whose memory is in cache, otherwise the result of `make`.
  template <class F>
  Handle take(F make) {
    if (kept_.empty())
      return make();
    Handle taken = std::move(kept_.back());
    kept_.pop_back();
    return taken;
  }

  /// At most `kept_max` are kept; others are dropped.
  void put_back(Handle idle) {
    if (kept_.size() < kept_max)
      kept_.push_back(std::move(idle));
  }

 private:
  std::vector<Handle> kept_;
};

} // namespace terrace
