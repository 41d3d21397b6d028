// The operations of a simulated ring on real sockets, eventfds and the like. A descriptor's readiness is the kernel's, which
// only this thread changes; when an operation that may go on does so, and how many bytes it moves, the seed decides.
#pragma once

#include "random.hpp"
#include "scheduler.hpp"

#include "runtime/ring.hpp"

#include <functional>
#include <list>
#include <optional>

namespace terrace::simulation {

struct socket_habits {
  std::chrono::nanoseconds most{50'000}; ///< from being possible to being done
  uint32_t cut = 0;                      ///< of a million transfers, that move only a part

  /// Swarm testing: in half of all runs transfers are whole.
  static socket_habits draw(seeded_random& random);
};

class simulated_sockets {
 public:
  using completes = std::function<void(runtime::operation&, int32_t result)>;

  /// `events` outlives it.
  simulated_sockets(scheduler& events, uint64_t seed, socket_habits habits, completes done);
  ~simulated_sockets();
  simulated_sockets(const simulated_sockets&) = delete;
  simulated_sockets& operator=(const simulated_sockets&) = delete;

  /// Something was done to a socket or the like, by whomever in this thread: others may be ready now.
  static void touch();
  static uint64_t touches();

  void start(runtime::operation& op);
  /// Ends the operation. False: it is not here.
  bool cancel(runtime::operation& op);
  /// Operations that have become possible are scheduled.
  void look();
  size_t in_flight() const { return waiting_.size(); }

 private:
  struct waiting {
    runtime::operation* op = nullptr;
    uint64_t number = 0;
    scheduler::event_id next = 0; ///< 0: it waits for the descriptor
  };
  using all = std::list<waiting>;

  void attempt(all::iterator which);
  void complete(all::iterator which, int32_t result);
  size_t part_of(int socket, size_t bytes);
  std::optional<int32_t> perform(const runtime::io_request& request);
  std::optional<int32_t> transfer(const runtime::io_request& request);

  scheduler& events_;
  seeded_random random_;
  socket_habits habits_;
  completes done_;
  uint64_t started_ = 0;
  uint64_t seen_ = 0; ///< touches
  all waiting_;
};

} // namespace terrace::simulation
