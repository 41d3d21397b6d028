// The queues of a disk: they decide which operation is submitted next, and keep the answers that are pending. Between
// classes the rules of transfer/io_scheduler.hpp decide; within a class, connections get equal shares of the bytes
// (base/fair_queue.hpp). Pure: the disk actor submits the transfers returned by `next` and reports completions.
#pragma once

#include "base/fair_queue.hpp"
#include "storage/disk/disk_messages.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

class disk_queue {
 public:
  using reply = std::function<void(disk_answer)>;
  using time_point = std::chrono::steady_clock::time_point;

  explicit disk_queue(const io_limits& limits) : shares_(limits) {}

  /// `answer` is called when the last operation is done; immediately for an empty request. `now` is returned
  /// with its transfers.
  void add(disk_request request, reply answer, time_point now = {});

  /// One transfer to submit.
  struct transfer {
    disk_direction direction = disk_direction::read;
    io_class priority = io_class::load;
    uint64_t file_offset = 0;
    std::byte* memory = nullptr;
    uint32_t bytes = 0;
    /// First transfer of its operation: the rest of a split or short one has not waited since `queued`.
    bool first = true;
    time_point queued;
    std::shared_ptr<const void> keep_alive; ///< the request's owners
  };
  /// Returns the tag for `completed`, and the transfer to submit; nullopt if the limits are reached or
  /// nothing waits. `room` is what other trust groups on the device leave.
  std::optional<std::pair<uint64_t, transfer>> next(const io_room& room = {});

  /// `result`: bytes transferred, or -errno. A short transfer is continued; one of 0 bytes is EIO. A split
  /// operation is done when all of its transfers are; after an error no more of them are started.
  void completed(uint64_t tag, int32_t result);

  /// The kernel does not complete this transfer: it is answered with ETIMEDOUT and no longer counts as in
  /// flight. Its memory stays owned by `keep_alive`, and its tag reserved until `completed`.
  void stalled(uint64_t tag);

  /// Fails all waiting operations in this direction with this error; submitted ones complete by themselves.
  void fail_waiting(disk_direction direction, int error_number);

  size_t in_flight() const { return shares_.in_flight(); }
  uint64_t bytes_in_flight(io_class priority) const { return shares_.bytes_in_flight(priority); }
  size_t waiting(io_class priority) const { return lines_[static_cast<size_t>(priority)].size(); }
  size_t waiting() const;
  uint64_t bytes_to_read() const { return to_read_; } ///< bytes of all reads, waiting and in flight

 private:
  struct job {
    /// Kept for submitted transfers: the request's owners, not its answer.
    std::shared_ptr<const disk_request> request;
    reply answer; ///< must not outlive its actor
    time_point queued;
    size_t left = 0;             ///< operations not done
    std::vector<uint32_t> parts; ///< for each operation: transfers waiting or submitted
    disk_answer result;
  };
  /// A range of one operation of a job.
  struct part {
    std::shared_ptr<job> owner;
    size_t operation = 0;
    uint64_t begin = 0;
    uint64_t end = 0;

    uint64_t bytes() const { return end - begin; }
    bool failed() const { return owner->result.failed[operation] != 0; }
  };
  struct slot {
    part piece;
    io_class what_class = io_class::load;
    uint64_t bytes = 0;
    bool used = false;
    bool stalled = false;
  };

  fair_queue<part>& line_of(const disk_request& request) {
    return lines_[static_cast<size_t>(class_of(request))];
  }
  void drop_ended();
  void again(part rest);
  void finish(const part& piece, int error_number); ///< the operation gets the first error of its parts

  io_scheduler shares_;
  std::array<fair_queue<part>, io_classes> lines_; ///< the rest of a long operation stays at the front
  std::vector<slot> slots_;
  std::vector<uint64_t> free_slots_;
  uint64_t to_read_ = 0;
};

} // namespace terrace
