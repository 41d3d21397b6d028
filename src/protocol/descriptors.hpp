// Descriptors on the socket (SCM_RIGHTS): the message structures for recvmsg and sendmsg.
//
// Both structs own the msghdr, the iovec and the control buffer, so a pointer to `header()` can be passed to
// a ring or to a system call; they must not move while the kernel uses them.
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

namespace terrace::protocol {

/// Up to eight owned descriptors, without allocation.
class descriptor_list {
 public:
  descriptor_list() = default;
  descriptor_list(descriptor_list&& other) noexcept
      : items_(std::move(other.items_)), count_(std::exchange(other.count_, 0)) {}
  descriptor_list& operator=(descriptor_list&& other) noexcept {
    items_ = std::move(other.items_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  unique_fd& operator[](size_t i) { return items_[i]; }
  const unique_fd& operator[](size_t i) const { return items_[i]; }

  /// If full, closes the descriptor and returns false.
  bool push_back(unique_fd fd) {
    if (count_ == descriptors_max)
      return false;
    items_[count_++] = std::move(fd);
    return true;
  }

 private:
  std::array<unique_fd, descriptors_max> items_;
  size_t count_ = 0;
};

/// Flags of every recvmsg of this protocol.
constexpr int receive_flags = MSG_CMSG_CLOEXEC;

/// Flags of every sendmsg of this protocol.
constexpr int send_flags = MSG_NOSIGNAL;

/// One recvmsg: call `prepare`, then the system call with `receive_flags`, then `take`.
class incoming_message {
 public:
  incoming_message() = default;
  incoming_message(const incoming_message&) = delete;
  incoming_message& operator=(const incoming_message&) = delete;

  /// The kernel writes into `area`, which must stay in place until the call has returned.
  msghdr* prepare(std::span<uint8_t> area);
  msghdr* header() { return &header_; }

  /// Call it after a system call that returned zero or more: it takes ownership of the received descriptors.
  /// Call it exactly once per successful receive, even if the bytes are not needed, or descriptors leak.
  descriptor_list take();

  /// True if the kernel could not deliver some descriptors (MSG_CTRUNC). Valid after `take`.
  bool truncated() const { return truncated_; }

 private:
  static constexpr size_t room = CMSG_SPACE(descriptors_max * sizeof(int));

  msghdr header_{};
  iovec area_{};
  alignas(cmsghdr) std::array<uint8_t, room> control_;
  bool truncated_ = false;
};

/// One sendmsg of one or more frames. The descriptors are attached to the first byte, so they must belong to
/// the first frame.
class outgoing_message {
 public:
  outgoing_message() = default;
  outgoing_message(const outgoing_message&) = delete;
  outgoing_message& operator=(const outgoing_message&) = delete;

  /// `bytes` and the descriptors are borrowed until the call has returned. At most `descriptors_max`
  /// descriptors. If only a part was sent, prepare the rest without descriptors: they were sent with the
  /// first byte.
  msghdr* prepare(std::span<const uint8_t> bytes, std::span<const int> descriptors = {});
  msghdr* header() { return &header_; }

 private:
  static constexpr size_t room = CMSG_SPACE(descriptors_max * sizeof(int));

  msghdr header_{};
  iovec area_{};
  alignas(cmsghdr) std::array<uint8_t, room> control_;
};

} // namespace terrace::protocol
