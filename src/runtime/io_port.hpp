// How an actor does I/O: it submits an operation to the ring of its home worker and gets a message back.
//
//   self->state.port->submit({.code = io_code::read, .fd = fd, .data = buffer->data(), .length = 4096,
//                             .keep_alive = buffer}, self, tag_of_my_read);
//   ...
//   [self](const io_done& done) { if (done.tag == tag_of_my_read) ... done.result is bytes or -errno ... }
#pragma once

#include "runtime/io_request.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

namespace terrace::runtime {

/// The result of an operation, sent to its actor exactly once per operation, also if it was cancelled
/// (-ECANCELED). It is not sent if the actor has ended. The result of a quiet_send is sent only if the actor
/// needs it.
struct io_done {
  uint64_t tag = 0;
  operation_id id{};
  int32_t result = 0; ///< like the system call: a count, a descriptor, or -errno (timeout: -ETIME)
  uint32_t flags = 0; ///< the completion's flags
};

/// The ring of one worker as seen by its actors. Call only on that worker's thread, `cancel` included.
/// Operations are always accepted: what the kernel cannot take now waits in a queue.
class io_port {
 public:
  virtual ~io_port() = default;

  /// The result is sent to `owner` as `io_done{tag}`. If the owner has ended, an accepted descriptor and
  /// descriptors received by recvmsg are closed.
  virtual operation_id submit(io_request request, const caf::strong_actor_ptr& owner, uint64_t tag) = 0;

  /// Asks the kernel to end the operation early; its `io_done` is still sent. No effect if the operation is
  /// unknown or complete.
  virtual void cancel(operation_id id) = 0;

  /// Registers [data, data + size) as fixed buffers in slots of 1 GiB and returns the index of the first
  /// slot, or -1 if the kernel refuses (memlock); plain buffers then work at more CPU per byte. Slots after
  /// the first are registered one by one while the worker is idle; an operation in a slot that is not yet
  /// registered, or across slots, falls back to a plain buffer. Touch the pages first: pinning a slot then
  /// stops the worker for 30 ms, otherwise for seconds.
  virtual int register_arena(void* data, uint64_t size) = 0;

  /// Unregisters the slots returned by `register_arena`: the kernel unpins the memory once the operations in
  /// flight have ended. The slots are not reused. No effect for -1.
  virtual void unregister_arena(int slot, uint64_t size) = 0;

  virtual ring_features features() const = 0;
};

} // namespace terrace::runtime

// Declares `io_done` as a CAF message. Include this wherever a behavior handles it.

// It refers to an operation of this process's ring and may carry a descriptor, so it never leaves the
// process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::runtime::io_done)
