// Ends turns early for actors whose messages may take long. CAF gives every actor the same number of messages
// per turn. Thirty-two short messages are done quickly, but thirty-two slices of a long lookup take most of a
// millisecond, during which the worker's other actors wait, even those that this actor just answered.
#pragma once

#include <caf/actor_config.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>

#include <chrono>
#include <cstddef>

namespace terrace::runtime {

/// Mixin: `Base` with turns that end after the first message that completes later than `turn`. Urgent
/// messages are checked after every message. Tests supply their own clock.
template <class Base, class Clock = std::chrono::steady_clock>
class short_turns : public Base {
 public:
  static constexpr std::chrono::microseconds turn{10};

  explicit short_turns(caf::actor_config& config) : Base(config) {}

  caf::resumable::resume_result resume(caf::execution_unit* worker, size_t messages_at_most) override {
    auto end = Clock::now() + turn;
    for (size_t handled = 1;; ++handled) {
      auto result = Base::resume(worker, 1);
      if (result != caf::resumable::resume_later || handled == messages_at_most || Clock::now() >= end)
        return result;
    }
  }
};

} // namespace terrace::runtime
