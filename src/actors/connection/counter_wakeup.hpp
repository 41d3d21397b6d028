// A client's bell: an eventfd that whoever has written a counter of the client rings, from any thread or process.
//
// The client has the same file description, so it may change its flags, empty it, or ring without end. Nothing here blocks on
// it: the ring's read waits, or a poll if the client has made it non-blocking. Rings that come together are one.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_control_block.hpp>

#include <memory>

namespace terrace::actors {

/// Belongs to one homed actor, which passes it the completions with its tag. At most one operation is in the ring.
class counter_wakeup {
 public:
  counter_wakeup(runtime::io_port& port, caf::strong_actor_ptr owner)
      : port_(port), owner_(std::move(owner)) {}

  bool hangs() const { return static_cast<bool>(shared_); } ///< it can be rung
  /// For the client. The first call makes the bell, and listens.
  result<unique_fd> descriptor();
  /// The completion of `io_tag::bell`. True: it was rung since the last time. Listens on.
  bool heard(int32_t result);
  /// Listens no more.
  void remove();

 private:
  /// What the kernel writes into, kept until it has.
  struct shared {
    unique_fd event;
    uint64_t rings = 0;
  };
  void read();
  void poll();

  runtime::io_port& port_;
  caf::strong_actor_ptr owner_;
  std::shared_ptr<shared> shared_; ///< null: nobody has asked for it
  runtime::operation_id listening_{};
  bool polls_ = false; ///< the operation in the ring is a poll
};

} // namespace terrace::actors
