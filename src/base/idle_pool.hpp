// A pool of idle things that a later request of the same kind can use again.
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

  /// Returns the most recently used handle, whose memory is still in cache, or the result of `make` if the
  /// pool is empty.
  template <class F>
  Handle take(F make) {
    if (kept_.empty())
      return make();
    Handle taken = std::move(kept_.back());
    kept_.pop_back();
    return taken;
  }

  /// The pool keeps at most `kept_max` handles and drops others.
  void put_back(Handle idle) {
    if (kept_.size() < kept_max)
      kept_.push_back(std::move(idle));
  }

 private:
  std::vector<Handle> kept_;
};

} // namespace terrace
