// The messages that move objects between an arena and a disk.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "actors/messages.hpp"
#include "memory/arena.hpp"
#include "storage/volume_id.hpp"
#include "tier/write_credit.hpp"
#include "transfer/io_scheduler.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace terrace::actors {

/// Header block and payload of one object in memory, 4 KiB aligned.
struct sealed_object {
  object_key key;
  uint64_t generation = 0;    ///< of its write to the store (storage/index_record.hpp)
  std::byte* begin = nullptr; ///< of the header block
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0; ///< header block, payload and padding
  std::optional<uint64_t>
      checksum{}; ///< of the payload, where whoever copied it has told; a check does not look at it
};

struct seal_request {
  space_ptr in;
  volume_id volume; ///< that headers must name
  std::vector<sealed_object> objects;
  std::vector<keep_alive> owners;
};
struct seal_answer {
  error failure;
};

/// `good` is parallel to the objects: header and checksum are those of the key.
struct check_request {
  space_ptr in;
  volume_id volume; ///< that headers must name
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
/// (delayed: until every operation has completed or is stalled.)
struct disk_request {
  disk_direction direction = disk_direction::read;
  io_class urgency = io_class::load; ///< of a read; a write is always `io_class::write`
  std::vector<disk_operation> operations;
  context_ptr context;
  std::vector<keep_alive> owners; ///< kept until the kernel is done with the last byte
};
inline io_class class_of(const disk_request& request) {
  return request.direction == disk_direction::write ? io_class::write : request.urgency;
}
/// `failure`: the disk is out of service in this direction, and nothing was tried. `failed` is parallel to the operations: 0
/// or an errno. ETIMEDOUT may mean that the kernel still has the operation: its memory belongs to the request's owners.
struct disk_answer {
  error failure;
  std::vector<int> failed;
  bool out_of_service = false; ///< what failed may be good once the device is back
};

/// To the disk set, whose offsets are those of the tier's arena; parallel to the operations of a `disk_request`.
struct disks_answer {
  error failure;           ///< a disk failed as none should
  std::vector<int> failed; ///< 0 or an errno; EBUSY: its disk is out of service, and nothing was tried
  std::vector<bool> away; ///< it failed because its disk is out of service, and may be good once that is back
};

/// Once the arena's memory is committed: registers it with the ring, which pins it. Until then, and where the kernel
/// refuses, plain buffers do.
struct register_memory {};
/// The arena has another segment, which is committed.
struct add_memory {
  std::shared_ptr<const arena> segment;
};
/// Answered with `retire_answer`: nothing lies in the segment that begins there any more, and it is let go of.
struct forget_memory {
  const std::byte* begin = nullptr;
};

/// From the journal of the same path: an operation of it has not come back in `health.stall_after`, or has come back after all. It
/// speaks for the device as a stalled write does.
struct journal_stalled {
  bool now = true;
};

/// A credit that has ended (tier/write_credit.hpp), on its way back.
struct write_credit_notice {
  uint64_t bytes = 0;
};

/// Published host objects that should also be on disk. The hold keeps them until they are, or cannot be.
struct write_through_notice {
  space_ptr in;
  batch_ptr objects;
  hold_ptr held;
  /// Null: they were used again, which may be reason enough for a disk that did not take them at first. Such a notice is
  /// forgotten when there is no credit for it.
  credit_ptr credit;
  std::vector<uint64_t>
      checksums{}; ///< of the payloads that are held, parallel to the objects; empty: not known
};

/// From the supervisor, when nothing is stored any more. (delayed: until nothing waits to be written)
struct finish_writes_request {};
struct finish_writes_answer {
  error failure;
};

} // namespace terrace::actors
