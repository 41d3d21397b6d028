// What the simulated daemon has on the heap: all that was allocated in its turns and has not been freed since, by whomever.
// The disk and the clients of a simulation are not the daemon's.
//
//   daemon_heap::turn turn;          // while an actor of the daemon runs
//   daemon_heap::pause not_its_own;  // while a part of the simulated machine works for it
//   daemon_heap::bytes()
#pragma once

#include <cstdint>
#include <utility>

namespace terrace::simulation {

class daemon_heap {
 public:
  /// False under sanitizers, which have allocators of their own.
  static bool is_counted();
  static uint64_t bytes();
  /// The most since the last call of `begin_peak`.
  static uint64_t peak();
  static void begin_peak();

  template <bool Counts>
  class scope {
   public:
    scope() : before_(std::exchange(counts(), Counts)) {}
    ~scope() { counts() = before_; }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    bool before_;
  };
  using turn = scope<true>;
  using pause = scope<false>;

 private:
  static bool& counts(); ///< of this thread
};

} // namespace terrace::simulation
