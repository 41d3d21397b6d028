// The line in front of a disk: which operation goes to the kernel next, and what is still owed to whom. Pure: the disk
// actor submits what `next` says and reports what completed.
#pragma once

#include "actors/disk_messages.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace terrace::actors {

struct disk_limits {
  uint32_t depth = 32;                       ///< operations in the kernel
  uint64_t bytes_in_flight = 256ULL << 20;   ///< of them; a single larger operation goes alone
  uint64_t operation_bytes_max = 8ULL << 20; ///< longer ones are cut, so that no reader waits behind a giant
  uint32_t reads_before_write = 8; ///< reads go first, but a waiting write follows at latest after so many
};

class disk_queue {
 public:
  using reply = std::function<void(disk_answer)>;

  explicit disk_queue(disk_limits limits) : limits_(limits) {}

  /// Answers when the last operation is done; at once for an empty request.
  void add(disk_request request, reply answer);

  /// One transfer for the kernel.
  struct transfer {
    disk_direction direction = disk_direction::read;
    uint64_t file_offset = 0;
    std::byte* memory = nullptr;
    uint32_t bytes = 0;
    std::shared_ptr<const void> keep_alive; ///< the request's owners
  };
  /// The tag that `completed` takes, and what to submit; nothing while the limits are reached or the line is empty.
  std::optional<std::pair<uint64_t, transfer>> next();

  /// `result`: bytes moved, or -errno. A short transfer goes on behind its end; one of 0 bytes is EIO.
  void completed(uint64_t tag, int32_t result);

  size_t in_flight() const { return in_flight_; }
  size_t waiting() const { return reads_.size() + writes_.size(); }

 private:
  struct job {
    std::shared_ptr<const disk_request>
        request; ///< the kernel's share: its owners, never the answer, which may not
                 ///< outlive the actor that owes it
    reply answer;
    size_t left = 0; ///< operations not done
    disk_answer result;
  };
  /// The rest of one operation of a job.
  struct part {
    std::shared_ptr<job> owner;
    size_t operation = 0;
    uint64_t done = 0;
  };
  struct slot {
    part what;
    uint32_t bytes = 0;
    bool used = false;
  };

  std::deque<part>& line_of(disk_direction direction) {
    return direction == disk_direction::read ? reads_ : writes_;
  }
  void finish(const part& what, int error_number);

  disk_limits limits_;
  std::deque<part> reads_;
  std::deque<part> writes_;
  std::vector<slot> slots_;
  std::vector<uint64_t> free_slots_;
  size_t in_flight_ = 0;
  uint64_t bytes_ = 0;
  uint32_t reads_in_row_ = 0;
};

} // namespace terrace::actors
