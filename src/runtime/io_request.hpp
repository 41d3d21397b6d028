// What can be asked of a ring, and what it is called. Plain C++: no actor, no io_uring.
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
  read,
  write,
  readv,
  writev,
  fsync,
  poll,
  timeout
};

constexpr size_t io_code_count = 11;

/// One operation. Everything that the kernel touches must be owned by `keep_alive`, which the ring holds
/// until the completion has been reaped, also when the actor has quit long before.
struct io_request {
  io_code code = io_code::nop;
  int fd = -1;
  uint64_t offset = 0;              ///< read, write, readv, writev: absolute file offset
  void* data = nullptr;             ///< read, write: buffer; readv, writev: iovec array
  uint32_t length = 0;              ///< read, write: bytes; readv, writev: number of iovecs
  msghdr* message = nullptr;        ///< recvmsg, sendmsg: with its iovecs and control room
  int flags = 0;                    ///< accept: SOCK_*; recvmsg, sendmsg: MSG_*
  int fixed_buffer = -1;            ///< read, write: index of a registered buffer that holds `data`, or -1
  uint32_t events = 0;              ///< poll: POLLIN, ...
  std::chrono::nanoseconds after{}; ///< timeout: relative to now
  std::shared_ptr<void> keep_alive;
};

/// Names an operation and its ring. 0 is never given out.
enum class operation_id : uint64_t {};

/// What the kernel granted, for `status`, metrics and the log at start.
struct ring_features {
  bool single_issuer = false;
  bool defer_taskrun = false;
  bool registered_buffers = false;
  std::string describe() const;
};

} // namespace terrace::runtime
