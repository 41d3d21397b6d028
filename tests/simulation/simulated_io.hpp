// A ring whose operations go to a simulated disk and whose completions come at virtual times, in an order that the seed
// decides. `enter` hands operations over; each takes effect some time later and completes later still, so a crash may
// come before, between and after both. `wait` advances virtual time.
//
// Descriptors are those of the disk, and with `serve_sockets` also real ones (simulated_sockets.hpp). On files of the disk,
// operations of sockets get the kernel's refusal.
#pragma once

#include "scheduler.hpp"
#include "simulated_disk.hpp"
#include "simulated_sockets.hpp"

#include "runtime/ring.hpp"

#include <deque>
#include <list>
#include <optional>
#include <vector>

namespace terrace::simulation {

/// How long the disk takes.
struct io_delays {
  std::chrono::nanoseconds least{20'000};
  std::chrono::nanoseconds most{400'000};
  uint32_t long_ones = 0; ///< of a million operations
  std::chrono::nanoseconds longest{std::chrono::seconds{60}};
};

class simulated_io final : public runtime::ring {
 public:
  /// Both must outlive the ring.
  simulated_io(scheduler& events, simulated_disk& disk, uint64_t seed)
      : events_(events), disk_(disk), random_(seed) {}
  ~simulated_io() override { end_process(); }
  simulated_io(const simulated_io&) = delete;
  simulated_io& operator=(const simulated_io&) = delete;

  void set_delays(const io_delays& delays) { delays_ = delays; }
  void serve_sockets(const socket_habits& habits);
  /// The device accepts operations and does none of them until `hang(false)`.
  void hang(bool hangs);

  /// Gives the writes that the disk has not done to `to`, the disk or a snapshot of it: a crash now may leave any part of
  /// them.
  void leave_writes(simulated_disk& to) const;
  /// The process has ended: no operation completes any more.
  void end_process();

  size_t in_flight() const {
    return unsubmitted_.size() + flights_.size() + ready_.size() + (sockets_ ? sockets_->in_flight() : 0);
  }

  // ---- ring ----

  void start(runtime::operation& op) override { unsubmitted_.push_back(&op); }
  void cancel(runtime::operation& op) override;
  size_t reap(std::span<runtime::completion> out) override;
  bool has_unsubmitted() const override { return !unsubmitted_.empty(); }
  bool wants_enter() const override { return false; }
  bool has_ready() const override { return !ready_.empty(); }
  int enter() override;
  /// Ends early if no event is left: with one thread, nothing else could end it.
  int wait() override;
  void wake() noexcept override { woken_ = true; }
  int register_arena(void*, uint64_t) override { return -1; }
  void unregister_arena(int, uint64_t) override {}
  runtime::ring_features features() const override { return {}; }
  void close() override {}

 private:
  /// An operation from its submission to its completion.
  struct flight {
    runtime::operation* op = nullptr;
    uint64_t number = 0;
    simulated_disk::sync_begun sync;
    scheduler::event_id next = 0; ///< 0: the device hangs
    bool done = false;            ///< it has taken effect
    int32_t result = 0;
  };
  using flights = std::list<flight>;

  void submit(runtime::operation& op);
  void take_effect(flights::iterator which);
  void complete(flights::iterator which, int32_t result);
  int32_t perform(flight& one);
  int32_t transfer(const runtime::io_request& request);
  std::chrono::nanoseconds delay();

  scheduler& events_;
  simulated_disk& disk_;
  seeded_random random_;
  io_delays delays_;
  bool hangs_ = false;
  bool woken_ = false;
  uint64_t submitted_ = 0;
  std::deque<runtime::operation*> unsubmitted_;
  flights flights_; ///< in the order of submission
  std::deque<runtime::completion> ready_;
  std::optional<simulated_sockets> sockets_;
};

} // namespace terrace::simulation
