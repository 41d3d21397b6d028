// How an actor does I/O: it submits an operation to the ring of its home worker and gets a message back.
//
//   self->state.port->submit({.code = io_code::read, .fd = fd, .data = buffer->data(), .length = 4096,
//                             .keep_alive = buffer}, self, tag_of_my_read);
//   ...
//   [self](const io_done& done) { if (done.tag == tag_of_my_read) ... done.result is bytes or -errno ... }
#pragma once

#include <caf/fwd.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

struct msghdr;

namespace terrace::runtime {

enum class io_code : uint8_t { nop, accept, recvmsg, sendmsg, read, write, readv, writev, fsync, poll, timeout };

/// One operation. Everything that the kernel touches must be owned by `keep_alive`, which the ring holds until the
/// completion has been reaped, also when the actor has quit long before.
struct io_request {
  io_code code = io_code::nop;
  int fd = -1;
  uint64_t offset = 0;            ///< read, write, readv, writev: absolute file offset
  void* data = nullptr;           ///< read, write: buffer; readv, writev: iovec array
  uint32_t length = 0;            ///< read, write: bytes; readv, writev: number of iovecs
  msghdr* message = nullptr;      ///< recvmsg, sendmsg: with its iovecs and control room
  int flags = 0;                  ///< accept: SOCK_*; recvmsg, sendmsg: MSG_*
  int fixed_buffer = -1;          ///< read, write: index of a registered buffer that holds `data`, or -1
  uint32_t events = 0;            ///< poll: POLLIN, ...
  std::chrono::nanoseconds after{}; ///< timeout: relative to now
  std::shared_ptr<void> keep_alive;
};

/// Names an operation and its ring. 0 is never given out.
enum class operation_id : uint64_t {};

/// The message that an operation's actor gets, exactly once for every operation, cancelled ones included (-ECANCELED),
/// unless the actor has ended.
struct io_done {
  uint64_t tag = 0;
  operation_id id{};
  int32_t result = 0; ///< what the system call would return: a count, a descriptor, or -errno (timeout: -ETIME)
  uint32_t flags = 0; ///< the completion's flags
};

/// What the kernel granted, for `status`, metrics and the log at start.
struct ring_features {
  bool single_issuer = false;
  bool defer_taskrun = false;
  bool registered_buffers = false;
  std::string describe() const;
};

/// The ring of one worker, as its actors see it. Called on that worker's thread only; `cancel` as well. An
/// implementation never fails to accept an operation: what the kernel cannot take now waits in a queue.
class io_port {
 public:
  virtual ~io_port() = default;

  /// `io_done{tag}` goes to `owner`. An accepted descriptor whose owner has ended is closed.
  virtual operation_id submit(io_request request, const caf::strong_actor_ptr& owner, uint64_t tag) = 0;

  /// Asks the kernel to end the operation early; its `io_done` comes all the same. Unknown or completed: no effect.
  virtual void cancel(operation_id id) = 0;

  /// Registers [data, data + size) as fixed buffers in slots of 1 GiB and returns the index of the first slot, or -1
  /// when the kernel refuses (memlock): plain buffers work then, at more CPU for each byte.
  virtual int register_arena(void* data, uint64_t size) = 0;

  virtual ring_features features() const = 0;
};

} // namespace terrace::runtime
