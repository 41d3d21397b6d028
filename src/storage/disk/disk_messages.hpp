// Messages that move objects between an arena and a disk.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/request_context.hpp"
#include "transfer/io_scheduler.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

enum class disk_direction : uint8_t { read, write };
struct disk_operation {
  uint64_t file_offset = 0;
  std::byte* memory = nullptr;
  uint64_t bytes = 0; ///< a multiple of 4 KiB
};
/// (delayed: until every operation has completed or is stalled)
struct disk_request {
  disk_direction direction = disk_direction::read;
  io_class urgency = io_class::load; ///< for a read; a write is always `io_class::write`
  std::vector<disk_operation> operations;
  context_ptr context;
  std::vector<keep_alive> owners; ///< kept until the kernel has finished with the last byte
};
inline io_class class_of(const disk_request& request) {
  return request.direction == disk_direction::write ? io_class::write : request.urgency;
}
/// A `failure` means that the disk is out of service in this direction, and nothing was tried. `failed` is
/// parallel to the operations: 0 or an errno. After ETIMEDOUT the kernel may still have the operation: its
/// memory belongs to the request's owners.
struct disk_answer {
  error failure;
  std::vector<int> failed;
  bool out_of_service = false; ///< failed objects may be intact once the device is back
};

/// The journal of the same path sends it: one of its operations has not completed within
/// `health.stall_after`, or has completed after all. Counts like a stalled write.
struct journal_stalled {
  bool now = true;
};

/// A preparer sends it: the disk of a group is open and its residents are known to the policy, or the reason why not.
struct opened_disk;
struct disk_prepared {
  size_t group = 0;
  error failure;
  std::shared_ptr<opened_disk> disk; ///< the receiver takes its contents
};

} // namespace terrace
