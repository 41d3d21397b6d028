// Counts changes, for those who wait for the next one.
#pragma once

#include "base/request_context.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace terrace {

/// Safe on any thread.
class change_count {
 public:
  uint64_t now() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  void add() {
    change([this] { return last_ + 1; });
  }
  /// There have been so many changes, at least. Call it when they can be seen.
  void reach(uint64_t changes) {
    change([&] { return std::max(last_, changes); });
  }
  /// Calls `tell`, on any thread, when there is a change behind `after`, unless `context` has ended by then. If there is
  /// one, calls it at once.
  void wait(uint64_t after, context_ptr context, std::function<void()> tell) {
    {
      std::lock_guard lock(mutex_);
      std::erase_if(waiting_, [](const waiter& each) { return !each.context->live(); });
      if (after >= last_) {
        waiting_.push_back({std::move(context), std::move(tell)});
        return;
      }
    }
    tell();
  }
  size_t waiting() const {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  struct waiter {
    context_ptr context;
    std::function<void()> tell;
  };

  template <class Next>
  void change(Next&& next) {
    std::vector<waiter> told;
    {
      std::lock_guard lock(mutex_);
      last_ = next();
      told.swap(waiting_);
    }
    for (const waiter& each : told)
      each.tell();
  }

  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::vector<waiter> waiting_; ///< requests in flight
};

} // namespace terrace
