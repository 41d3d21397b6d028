// The operations of a ring. Plain C++: no actor, no io_uring.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

struct msghdr;

namespace terrace::runtime {

enum class io_code : uint8_t {
  nop,
  accept,
  recvmsg,
  sendmsg,
  send,
  read,
  write,
  readv,
  writev,
  fsync,
  poll,
  timeout,
  statx
};

constexpr size_t io_code_count = 13;

/// A `send` whose actor is told only if the socket does not take all of it. `keep_alive` owns it; only the
/// ring's thread uses it.
struct quiet_send {
  /// Set by the submitter; cleared when all of it was sent, unless `announced` is set.
  bool in_flight = false;
  bool announced = false; ///< the actor wants the result in any case; may be set while the send is in flight
};

/// One operation. Everything that the kernel accesses must be owned by `keep_alive`, which the ring holds
/// until the completion has been reaped, even if the actor has ended before.
struct io_request {
  io_code code = io_code::nop;
  int fd = -1;
  uint64_t offset = 0; ///< read, write, readv, writev: absolute file offset
  /// Buffer for read, write, send; iovecs for readv, writev; struct statx for statx.
  void* data = nullptr;
  const char* path = nullptr;       ///< path for statx
  uint32_t length = 0;              ///< read, write, send: bytes; readv, writev: number of iovecs
  msghdr* message = nullptr;        ///< message with its iovecs and control buffer, for recvmsg and sendmsg
  int flags = 0;                    ///< accept: SOCK_*; recvmsg, sendmsg, send: MSG_*
  int fixed_buffer = -1;            ///< read, write: index of a registered buffer that holds `data`, or -1
  uint32_t events = 0;              ///< poll: POLLIN, ...
  std::chrono::nanoseconds after{}; ///< timeout: relative to now
  quiet_send* quiet = nullptr;      ///< for send; null: the actor gets the result
  std::shared_ptr<void> keep_alive;
};

/// Identifies an operation and its ring. 0 is never used.
enum class operation_id : uint64_t {};

/// Features granted by the kernel, for `status`, metrics and the log at start.
struct ring_features {
  bool single_issuer = false;
  bool defer_taskrun = false;
  bool registered_buffers = false;
  std::string describe() const;
};

} // namespace terrace::runtime
