// Messages to copiers: copying between an arena and a client's memory, and headers and checksums of objects.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "index/object_header.hpp"
#include "index/resident.hpp"
#include "index/space_registry.hpp"
#include "memory/device_memory.hpp"
#include "transfer/arrival_counters.hpp"
#include "transfer/scatter_gather.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

// Generations that a device writes when the pools of a load have arrived in its memory.

/// Counters `slot` to `slot + count` of a page that the device has mapped: each becomes `value`, in the order of the device's
/// stream, behind the bytes.
struct device_generations {
  device_memory_ptr page; ///< null: nobody waits
  uint32_t slot = 0;
  uint32_t count = 0;
  uint32_t value = 0;

  device_generations part(size_t first, size_t counters) const {
    return {page, slot + static_cast<uint32_t>(first), static_cast<uint32_t>(counters), value};
  }
};

/// What the parts of one copy know of each other, on the threads of their copiers.
class copy_parts {
 public:
  explicit copy_parts(size_t parts) : left_(parts) {}

  /// One is copied. True: that was the last one, and the bytes of all are visible to the caller.
  bool copied() { return left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// One has failed. True: it is the first.
  bool fail() { return !failed_.exchange(true, std::memory_order_relaxed); }
  /// The others end as soon as they notice.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  std::atomic<size_t> left_;
  std::atomic<bool> failed_{false};
};

/// An object whose payload is at `inside` in the arena, and in the runs of its request has this number.
struct copied_object {
  std::byte* inside = nullptr; ///< null if the request has a device's arena
  size_t number = 0;
  uint64_t at = 0;    ///< in that arena
  uint64_t bytes = 0; ///< of the payload; 0: the copy is not divided by it
};
enum class copy_direction : uint8_t { into_arena, out_of_arena };
/// Copies the objects in order, piece by piece. The copier derives the pieces from the runs, a part at a time: a request
/// may have a million of them. Ends early with `cancelled` if the context ended, with `gone` if the outside
/// memory shrank. A part of a copy (transfer/copy_ops.hpp) may begin and end inside an object.
struct copy_request {
  copy_direction direction = copy_direction::into_arena;
  outside_memory outside;
  std::shared_ptr<const scatter_gather> runs;
  std::vector<copied_object> objects;
  device_memory_ptr arena{}; ///< of the objects, on the same device as the outside memory; null: host memory
  bool checksums = false;    ///< of the payloads
  arrival arrived{};         ///< announced when everything is copied
  device_generations generations{}; ///< written by the device behind its copies
  context_ptr context;
  std::vector<keep_alive> owners;      ///< holds and reservations of all arena bytes that are accessed
  uint64_t begin = 0;                  ///< in the first object's payload
  uint64_t end = UINT64_MAX;           ///< in the last one's
  std::shared_ptr<copy_parts> parts{}; ///< of which this is one; null: it is all

  payload_range range_of(size_t object) const {
    return {object == 0 ? begin : 0, object + 1 == objects.size() ? end : UINT64_MAX};
  }
};
struct copy_answer {
  error failure;
  uint64_t bytes = 0;
  std::vector<uint64_t> checksums; ///< parallel to the objects if requested, unless it failed
};
/// To the mover of a tier in a device's memory: copies objects that are held there out of its arena. Failures: `not_found`,
/// if one of them is there no longer, because the process that had it has ended.
struct device_load_request {
  copy_request copy;
  std::vector<object_id> ids; ///< parallel to its objects
};

// ---- headers and checksums ----

/// The header block and payload of one object in memory, 4 KiB aligned.
struct sealed_object {
  object_key key;
  uint64_t generation = 0;    ///< of its write to the volume (index/index_record.hpp)
  std::byte* begin = nullptr; ///< of the header block
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;        ///< header block, payload and padding
  std::optional<uint64_t> checksum{}; ///< of the payload, if its copier supplied it; ignored by a check
};

struct seal_request {
  space_ptr space;
  volume_id volume; ///< to be contained in headers
  std::vector<sealed_object> objects;
  context_ptr context{}; ///< of the waiting request; may be null. Ends after the owners, as in SubjectEnd
  std::vector<keep_alive> owners;
};
struct seal_answer {
  error failure;
};

/// `good` is parallel to the objects: header and checksum match the key.
struct check_request {
  space_ptr space;
  volume_id volume; ///< to be contained in headers
  std::vector<sealed_object> objects;
  context_ptr context{}; ///< of the waiting request; may be null. Ends after the owners, as in SubjectEnd
  std::vector<keep_alive> owners;
};
struct check_answer {
  error failure;
  std::vector<bool> good;
};

} // namespace terrace
