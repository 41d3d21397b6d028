// The ring as the loop sees it: operations go in, completions come out. `uring` is the kernel's,
// `simulated_ring` the tests'. Plain C++, so that both can be tried without an actor.
//
// Every call but `wake` is made by the one thread that created the ring.
#pragma once

#include "runtime/io_request.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::runtime {

/// An operation between `start` and its completion. The caller owns the record and keeps its address until
/// the completion has come out of `reap`: the kernel may touch what the request names, and `after`, until
/// then.
struct operation {
  io_request request;
  std::array<int64_t, 2> after{}; ///< the timeout as the kernel reads it: seconds, nanoseconds
};

struct completion {
  operation* op = nullptr;
  int32_t result = 0;
  uint32_t flags = 0;
};

class ring {
 public:
  virtual ~ring() = default;

  /// Takes the operation; never fails and never blocks. It reaches the kernel with the next `enter` or
  /// `wait`, or earlier when the submission queue is full.
  virtual void start(operation& op) = 0;

  /// Asks for an early end of an operation whose completion has not been reaped. It completes exactly once
  /// all the same, with -ECANCELED or with what it reached before.
  virtual void cancel(operation& op) = 0;

  /// Fills `out` with completions that are ready, without a system call. Returns how many.
  virtual size_t reap(std::span<completion> out) = 0;

  /// Operations have been started that the kernel has not seen.
  virtual bool has_unsubmitted() const = 0;

  /// The kernel holds completions back until it is entered (DEFER_TASKRUN, an overflown queue).
  virtual bool wants_enter() const = 0;

  /// Submits everything and collects completions; does not block.
  virtual void enter() = 0;

  /// Submits everything and blocks until a completion is ready or `wake` was called since the last `wait`
  /// returned because of it. May return early.
  virtual void wait() = 0;

  /// From any thread, also between `close` and the destructor.
  virtual void wake() noexcept = 0;

  /// See io_port.
  virtual int register_arena(void* data, uint64_t size) = 0;
  virtual void unregister_arena(int slot, uint64_t size) = 0;

  virtual ring_features features() const = 0;

  /// Gives the kernel's resources back. Every operation must have been reaped.
  virtual void close() = 0;
};

/// No fixed buffer is larger (the kernel answers EFAULT): arenas are registered as slots of this size.
constexpr uint64_t buffer_slot_bytes = uint64_t{1} << 30;

} // namespace terrace::runtime
