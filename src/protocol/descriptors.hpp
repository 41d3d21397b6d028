// Descriptors on the socket (SCM_RIGHTS): the message structures for recvmsg and sendmsg.
//
// Both structs own the msghdr, the iovec and the control buffer, so a pointer to `header()` can be passed to
// a ring or to a system call; they must not move while the kernel uses them.
#pragma once

#include "base/unique_fd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <vector>

namespace terrace::protocol {

// Limits of everything on the wire, checked before use; documented in docs/protocol.md.

constexpr size_t header_bytes = 16;
constexpr size_t frame_alignment = 8;
constexpr uint64_t frame_bytes_max = 16ULL << 20; ///< header, body and padding
constexpr uint64_t hello_bytes_max = 64ULL << 10; ///< for a frame before the handshake is complete
constexpr size_t descriptors_max = 8;             ///< per frame
constexpr uint32_t tokens_max = 2'097'152;        ///< per prefix
constexpr uint32_t chunks_max = 65'536;           ///< per request
constexpr uint32_t digests_max = 131'072;         ///< per prefix, in either unit
constexpr uint32_t chunk_tokens_max = 65'536;
constexpr uint64_t run_skipped = UINT64_MAX;      ///< offset of a run whose bytes are not loaded
constexpr uint32_t pools_max = 16;                ///< declared by a client
constexpr uint32_t open_pools_max = 128;          ///< per space, including one per layer group
constexpr uint32_t tensors_max = 16;              ///< per object
constexpr uint32_t status_spaces_max = 64;        ///< listed in a status
constexpr uint64_t logits_bytes_max = 8ULL << 20; ///< per prompt
constexpr uint32_t sessions_listed_max = 1'024;
constexpr uint32_t leases_listed_max = 1'024;
constexpr uint32_t events_told_max = 8'192;    ///< per answer
constexpr uint32_t explained_runs_max = 1'024; ///< per answer
constexpr uint32_t world_size_max = 1'024;
constexpr uint32_t items_max = 4'096;
constexpr uint32_t tags_max = 16;
constexpr uint32_t runs_max = 1'048'576; ///< pieces per request: the sum of the runs' counts
constexpr uint32_t resumes_max = 1'024;
constexpr size_t string_bytes_max = 4'096;
constexpr size_t pool_name_bytes_max = 64;
constexpr size_t name_bytes_max =
    256; ///< names of clients, pools, models, dtypes, layouts, traces, LoRA, items and tags
constexpr size_t answer_tables_max = 262'144; ///< per answer (status lists clients and tiers)
constexpr size_t request_tables_max = 8'192;  ///< per request
constexpr uint64_t region_bytes_max = 1ULL << 44;
constexpr uint32_t region_events_max = 1024;
constexpr uint64_t region_event_bytes = sizeof(uint32_t) + 64; ///< a generation, and the handle of its event
constexpr uint64_t object_bytes_max = 1ULL << 30;  ///< no object crosses a registered slot of 1 GiB
constexpr uint32_t socket_buffer_bytes = 1U << 20; ///< requested on both ends

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
