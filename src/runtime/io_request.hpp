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

/// A `send` of which its actor hears only if the socket does not take all of it. In memory that `keep_alive` owns, and
/// used on the ring's thread alone.
struct quiet_send {
  bool in_flight =
      false; ///< set by whoever submits it; false again when all of it was sent, unless `announced`
  bool announced = false; ///< the actor wants to hear in any case; may be set while it is in flight
};

/// One operation. Everything that the kernel accesses must be owned by `keep_alive`, which the ring holds
/// until the completion has been reaped, even if the actor has ended before.
struct io_request {
  io_code code = io_code::nop;
  int fd = -1;
  uint64_t offset = 0;              ///< read, write, readv, writev: absolute file offset
  void* data = nullptr;             ///< read, write, send: buffer; readv, writev: iovecs; statx: struct statx
  const char* path = nullptr;       ///< statx
  uint32_t length = 0;              ///< read, write, send: bytes; readv, writev: number of iovecs
  msghdr* message = nullptr;        ///< recvmsg, sendmsg: with its iovecs and control buffer
  int flags = 0;                    ///< accept: SOCK_*; recvmsg, sendmsg, send: MSG_*
  int fixed_buffer = -1;            ///< read, write: index of a registered buffer that holds `data`, or -1
  uint32_t events = 0;              ///< poll: POLLIN, ...
  std::chrono::nanoseconds after{}; ///< timeout: relative to now
  quiet_send* quiet = nullptr;      ///< send: see there; null: it is told
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
