// Messages that move objects between an arena and a disk.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/messages.hpp"
#include "storage/volume_id.hpp"
#include "tier/write_credit.hpp"
#include "transfer/io_scheduler.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace terrace::actors {

/// The header block and payload of one object in memory, 4 KiB aligned.
struct sealed_object {
  object_key key;
  uint64_t generation = 0;    ///< of its write to the volume (storage/index_record.hpp)
  std::byte* begin = nullptr; ///< of the header block
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;        ///< header block, payload and padding
  std::optional<uint64_t> checksum{}; ///< of the payload, if its copier supplied it; ignored by a check
};

struct seal_request {
  space_ptr in;
  volume_id volume; ///< to be contained in headers
  std::vector<sealed_object> objects;
  std::vector<keep_alive> owners;
};
struct seal_answer {
  error failure;
};

/// `good` is parallel to the objects: header and checksum match the key.
struct check_request {
  space_ptr in;
  volume_id volume; ///< to be contained in headers
  std::vector<sealed_object> objects;
  std::vector<keep_alive> owners;
};
struct check_answer {
  error failure;
  std::vector<bool> good;
};

enum class disk_direction : uint8_t { read, write };
struct disk_operation {
  uint64_t file_offset = 0;
  std::byte* memory = nullptr;
  uint64_t bytes = 0; ///< a multiple of 4 KiB
};
/// (delayed: until every operation has completed or is stalled)
struct disk_request {
  disk_direction direction = disk_direction::read;
  io_class urgency = io_class::load; ///< of a read; a write is always `io_class::write`
  std::vector<disk_operation> operations;
  context_ptr context;
  std::vector<keep_alive> owners; ///< kept until the kernel has finished with the last byte
};
inline io_class class_of(const disk_request& request) {
  return request.direction == disk_direction::write ? io_class::write : request.urgency;
}
/// `failure`: the disk is out of service in this direction, and nothing was tried. `failed` is parallel to
/// the operations: 0 or an errno. After ETIMEDOUT the kernel may still have the operation: its memory belongs
/// to the request's owners.
struct disk_answer {
  error failure;
  std::vector<int> failed;
  bool out_of_service = false; ///< what failed may be intact once the device is back
};

/// From the journal of the same path: one of its operations has not completed within `health.stall_after`, or
/// has completed after all. Counts like a stalled write.
struct journal_stalled {
  bool now = true;
};

/// Returns a credit that has ended (tier/write_credit.hpp).
struct write_credit_notice {
  uint64_t bytes = 0;
};

/// Published host objects that should also be written to disk. The hold keeps them until they are, or cannot
/// be.
struct write_through_notice {
  space_ptr in;
  batch_ptr objects;
  hold_ptr held;
  /// Null: the objects were accessed again, so a disk that rejected them may admit them now. Such a notice is
  /// dropped if there is no credit for it.
  credit_ptr credit;
  std::vector<uint64_t> checksums{}; ///< of the held payloads, parallel to the objects; empty: unknown
};

/// From the supervisor, when there are no more stores. (delayed: until nothing waits to be written)
struct finish_writes_request {};
struct finish_writes_answer {
  error failure;
};

} // namespace terrace::actors
