// A ring for tests, single-threaded and without io_uring. Operations are real, non-blocking system calls on
// real descriptors, or scripted by the test: errors, short reads and writes, made-up results, completions
// held back and reordered by a seed. Time is simulated: timeouts end on `advance`.
//
//   simulated_ring ring{seed};
//   ring.fail_next(io_code::read, EIO);
//   ring.shorten(io_code::write, 512);
//   ring.hold(io_code::recvmsg);  ...  ring.release(io_code::recvmsg);
#pragma once

#include "runtime/ring.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace terrace::runtime {

class simulated_ring final : public ring {
 public:
  /// Seed 0: completions keep the order in which operations could end. Otherwise each `reap` shuffles the
  /// available ones.
  explicit simulated_ring(uint64_t seed = 0) : seed_(seed), random_(seed) {}

  // -- scripting --

  /// The next `count` operations of this kind fail with -`error_number` and have no effect.
  void fail_next(io_code code, int error_number, size_t count = 1);

  /// Reads and writes of this kind transfer at most `bytes`; 0 removes the limit.
  void shorten(io_code code, uint32_t bytes) { limits_[code] = bytes; }

  /// Operations of this kind are executed, but their completions are held until `release`.
  void hold(io_code code) { held_codes_[code] = true; }
  void release(io_code code);
  /// Holds the completions of operations that `which` selects, whatever their kind.
  void hold_those(std::function<bool(const io_request&)> which) { held_ones_ = std::move(which); }
  void release_those();

  /// Called first for every operation: if it returns a result, the operation completes with it, without a
  /// system call.
  void respond(std::function<std::optional<int32_t>(const io_request&)> script) {
    script_ = std::move(script);
  }

  /// Whether sockets take the data of `send` at once. They never do while a `sendmsg` is held, scripted or
  /// set to fail.
  void send_at_once(bool taken) { sends_at_once_ = taken; }

  /// Advances the ring's clock.
  void advance(std::chrono::nanoseconds by) { now_ += by; }

  /// True: arenas get slots. False: they are refused, as without memlock.
  void grant_buffers(bool granted) { grant_buffers_ = granted; }

  // -- looking --

  /// Operations started and not yet reaped.
  size_t in_flight() const { return pending_.size() + ready_.size() + held_.size(); }
  size_t in_flight(io_code code) const;
  /// Operations of this kind started so far.
  uint64_t started(io_code code) const { return started_[static_cast<size_t>(code)]; }
  uint64_t cancelled() const { return cancelled_; }
  bool closed() const { return closed_; }

  // -- ring --

  void start(operation& op) override;
  void cancel(operation& op) override;
  size_t reap(std::span<completion> out) override;
  bool has_unsubmitted() const override { return false; }
  bool wants_enter() const override { return false; }
  bool has_ready() const override { return !ready_.empty(); }
  int enter() override {
    turn();
    return 0;
  }
  /// Never blocks: with one thread nothing could end it.
  int wait() override { return enter(); }
  void wake() noexcept override {}
  int register_arena(void* data, uint64_t size) override;
  void unregister_arena(int slot, uint64_t size) override;
  ring_features features() const override { return {.registered_buffers = slots_ != 0}; }
  void close() override { closed_ = true; }

 private:
  struct waiting {
    operation* op;
    std::chrono::nanoseconds deadline;
  };

  void turn();
  int32_t send(const io_request& request);
  void complete(operation& op, int32_t result);
  std::optional<int32_t> attempt(const waiting& item);
  std::optional<int32_t> attempt_transfer(const io_request& request);

  uint64_t seed_;
  std::mt19937_64 random_;
  std::deque<waiting> pending_;
  std::vector<completion> ready_;
  std::vector<completion> held_;
  std::map<io_code, std::deque<int>> failures_;
  std::map<io_code, uint32_t> limits_;
  std::map<io_code, bool> held_codes_;
  std::function<bool(const io_request&)> held_ones_;
  std::function<std::optional<int32_t>(const io_request&)> script_;
  std::chrono::nanoseconds now_{};
  bool grant_buffers_ = true;
  bool closed_ = false;
  bool sends_at_once_ = true;
  int slots_ = 0;
  uint64_t cancelled_ = 0;
  std::array<uint64_t, io_code_count> started_{};
};

} // namespace terrace::runtime
