// How an actor does I/O: it submits an operation to the ring of its home worker and gets a message back.
//
//   self->state.port->submit({.code = io_code::read, .fd = fd, .data = buffer->data(), .length = 4096,
//                             .keep_alive = buffer}, self, tag_of_my_read);
//   ...
//   [self](const io_done& done) { if (done.tag == tag_of_my_read) ... done.result is bytes or -errno ... }
#pragma once

#include "runtime/io_request.hpp"

#include <caf/fwd.hpp>

namespace terrace::runtime {

/// The message that an operation's actor gets, exactly once for every operation, cancelled ones included
/// (-ECANCELED), unless the actor has ended.
struct io_done {
  uint64_t tag = 0;
  operation_id id{};
  int32_t result =
      0; ///< what the system call would return: a count, a descriptor, or -errno (timeout: -ETIME)
  uint32_t flags = 0; ///< the completion's flags
};

/// The ring of one worker, as its actors see it. Called on that worker's thread only; `cancel` as well. An
/// implementation never fails to accept an operation: what the kernel cannot take now waits in a queue.
class io_port {
 public:
  virtual ~io_port() = default;

  /// `io_done{tag}` goes to `owner`. An accepted descriptor whose owner has ended is closed, and so are
  /// descriptors that a recvmsg received.
  virtual operation_id submit(io_request request, const caf::strong_actor_ptr& owner, uint64_t tag) = 0;

  /// Asks the kernel to end the operation early; its `io_done` comes all the same. Unknown or completed: no
  /// effect.
  virtual void cancel(operation_id id) = 0;

  /// Registers [data, data + size) as fixed buffers in slots of 1 GiB and returns the index of the first slot, or -1
  /// when the kernel refuses (memlock): plain buffers work then, at more CPU for each byte. Slots after the first
  /// are registered one by one while the worker idles; an operation in one that is not yet, or that crosses slots,
  /// uses a plain buffer by itself. Touch the pages before: pinning a slot stops the worker 30 ms then, and seconds
  /// otherwise.
  virtual int register_arena(void* data, uint64_t size) = 0;

  /// Gives back what `register_arena` answered with `slot`: the kernel unpins the memory once operations in flight have
  /// left it. Its slots are not used again. -1 has no effect.
  virtual void unregister_arena(int slot, uint64_t size) = 0;

  virtual ring_features features() const = 0;
};

} // namespace terrace::runtime
