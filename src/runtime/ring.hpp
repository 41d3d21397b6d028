// The ring used by the event loop: operations go in, completions come out. `uring` is the kernel's,
// `simulated_ring` is for tests. Plain C++, so that both can be tested without actors.
//
// All calls except `wake` must be made by the thread that created the ring.
#pragma once

#include "base/unique_fd.hpp"
#include "runtime/io_request.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::runtime {

// An eventfd through which any thread ends a ring's wait. It outlives the ring, because a thread that saw the
// worker asleep may call `signal` after the worker has woken up and ended.

class wake_event {
 public:
  wake_event();

  /// -1 if the process has no descriptors left.
  int fd() const { return fd_.get(); }
  void signal() noexcept;

  /// The ring's armed read stores the count here.
  uint64_t* value() { return &value_; }

 private:
  unique_fd fd_;
  uint64_t value_ = 0;
};

/// An operation from `start` to its completion. The caller owns the record and keeps it at its address until
/// the completion has been returned by `reap`: until then the kernel may access `after` and everything the
/// request refers to.
struct operation {
  io_request request;
  std::array<int64_t, 2> after{}; ///< the timeout in the kernel's format: seconds, nanoseconds
};

struct completion {
  operation* op = nullptr;
  int32_t result = 0;
  uint32_t flags = 0;
};

class ring {
 public:
  virtual ~ring() = default;

  /// Accepts the operation; never fails and never blocks. It is submitted to the kernel by the next `enter`
  /// or `wait`, or earlier if the submission queue is full. A `send` completes during that call, with the
  /// bytes that the socket takes then.
  virtual void start(operation& op) = 0;

  /// Requests an early end of an operation whose completion has not been reaped. It still completes exactly
  /// once, with -ECANCELED or with its result.
  virtual void cancel(operation& op) = 0;

  /// Fills `out` with available completions without a system call. Returns their number.
  virtual size_t reap(std::span<completion> out) = 0;

  /// True if started operations have not been submitted.
  virtual bool has_unsubmitted() const = 0;

  /// True if the kernel withholds completions until it is entered (DEFER_TASKRUN, an overflown queue).
  virtual bool wants_enter() const = 0;

  /// True if `reap` would find something, or the kernel withholds it until it is entered. No system call.
  virtual bool has_ready() const = 0;

  /// Submits everything and collects completions; does not block. Returns 0, or the error number with which
  /// the kernel refuses to be entered: then nothing that was started completes any more, and calling again
  /// does not help. Transient errors (a signal, a full queue, a shortage) are not reported.
  virtual int enter() = 0;

  /// Like `enter`, for a caller that has other work and will be back soon. Receives that were started since
  /// the last call may be held back until the next one: by then the peer may have sent the data, so the
  /// kernel need not wait for it.
  virtual int enter_between() { return enter(); }

  /// Submits everything and blocks until a completion is available or `wake` is called; a `wake` since the
  /// last `wait` counts. May return early. Returns the same as `enter`.
  virtual int wait() = 0;

  /// Safe on any thread, also between `close` and the destructor.
  virtual void wake() noexcept = 0;

  /// See io_port.
  virtual int register_arena(void* data, uint64_t size) = 0;
  virtual void unregister_arena(int slot, uint64_t size) = 0;

  virtual ring_features features() const = 0;

  /// Releases the kernel's resources. Every operation must have been reaped.
  virtual void close() = 0;
};

/// Arenas are registered in slots of this size. The kernel allows up to 1 GiB, but pinning that takes 30 ms, in
/// which the worker serves nobody. An operation that crosses the end of a slot uses plain buffers.
constexpr uint64_t buffer_slot_bytes = uint64_t{64} << 20;

} // namespace terrace::runtime
