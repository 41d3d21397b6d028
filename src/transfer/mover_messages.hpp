// Messages to movers, which copy objects between host memory and a tier below it.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "base/unique_fd.hpp"
#include "index/object_header.hpp"
#include "index/prefix_plan.hpp"
#include "index/space_registry.hpp"
#include "memory/arena.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_source.hpp"
#include "transfer/copy_messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

using read_limit = std::chrono::steady_clock::time_point;

/// When to wait no longer for a prefix that is read from now on.
inline read_limit read_limit_of(const prefix_plan& plan, read_limit now) {
  if (plan.patience_s <= 0 || plan.patience_s > 1e6)
    return read_limit::max();
  return now +
         std::chrono::duration_cast<read_limit::duration>(std::chrono::duration<double>(plan.patience_s));
}

struct moved_object {
  object_key key;
  object_place place;                 ///< in the tier below
  std::byte* memory = nullptr;        ///< the extent in host memory: a header block, then the payload
  std::optional<uint64_t> checksum{}; ///< of the payload, if known; for writes
};
struct moved_objects {
  space_ptr space;
  std::vector<moved_object> objects;
  context_ptr context;            ///< of the waiting request; may be null
  std::vector<keep_alive> owners; ///< of the memory and the places, kept until they are no longer accessed
  /// Nobody waits longer for what is read, because computing it takes less time. A remote store answers then; movers of
  /// other tiers answer when they have read it.
  read_limit read_by = read_limit::max();
};

/// Reads into reserved memory. Objects that are `done` have been verified: key, epoch, generation and
/// checksum.
struct read_request : moved_objects {};
/// Writes from held memory to reserved places. Movers of several tiers may write the same object
/// concurrently: the header block in memory belongs to the disk set, and the other movers read only the
/// payload.
struct write_request : moved_objects {};

enum class move_outcome : uint8_t {
  done,
  present, ///< the device had it already, so that nothing was moved; as good as `done`
  failed,  ///< this object cannot be read, is not the expected one, or was not written
  away, ///< the device is out of service: nothing was tried, or the object may be intact when the device returns
  stalled, ///< the device did not answer and may still write to the memory, or read it
  late,    ///< it did not come by `read_by`, and may still be written to the memory
};
/// Asks a tier on a store that other machines write to which of these are there, from `first` on, up to a gap. What is there joins
/// the tier's index, and what is not leaves it.
struct find_request {
  space_ptr space;
  object_source objects;
  size_t first = 0;
};
struct find_answer {
  error failure;
  bool changed = false; ///< the index has changed: look again
};
/// Tells such a tier that its group's volume serves from now on: what others have cleared meanwhile is cleared there, too.
struct volume_joined_notice {};
/// Asks such a tier to remove the values of these objects from its store, whatever the tier's index has. Once it is answered, no
/// lookup and no load that begins finds what the store had before.
struct remove_values_request {
  static constexpr size_t objects_max = 256;
  space_ptr space;
  batch_ptr objects;
};
struct remove_values_answer {
  error failure; ///< the store may still have some, because it is away (`busy`) or refuses
};

/// Parallel to the objects. `failure`: none was moved, because the context or a required actor has ended.
struct move_answer {
  error failure;
  std::vector<move_outcome> outcomes;
};

/// The arena's memory is committed: a disk registers it with its ring, which pins it. Until then, and if the
/// kernel refuses, it uses plain buffers. Not sent without prefault: pinning would commit all of it.
struct register_memory {};
/// The arena has a new segment.
struct add_memory {
  std::shared_ptr<const arena> segment;
  bool committed = true; ///< and may be registered
};
/// Answered with `retire_answer`: the segment that begins there is empty; unregister it.
struct forget_memory {
  const std::byte* begin = nullptr;
};

/// The tier no longer changes.
struct close_mover_request {};
struct close_mover_answer {
  error failure; ///< what a restart will not find, and why
};

// Messages about objects on disk that a device reads itself.

/// Objects of a disk tier, which are held, into a region. `copy` is without generations, announcement and arena.
struct direct_load {
  space_ptr space;
  copy_request copy;
  std::vector<object_key> keys;     ///< parallel to its objects
  std::vector<object_place> places; ///< the same
};

/// An object in a file: its extent begins there with the header block, and is as long as `physical_bytes_for` says.
struct object_in_file {
  std::shared_ptr<named_file> file; ///< open for O_DIRECT
  uint64_t file_offset = 0;
  expected_object expected;
};
/// To the device of the region: its process reads the objects into memory of the device, verifies them there, and copies them into
/// the region.
struct direct_read_request {
  copy_request copy;
  std::vector<object_in_file> files; ///< parallel to its objects
};

/// `failure`: `unsupported` or `busy` if nothing was tried: the device does not read this, or not yet; `gone` with the process; or
/// the end of the context.
struct direct_read_answer {
  error failure;
  size_t objects = 0; ///< the first ones, which are in the region; what follows has to be read in another way
};

} // namespace terrace
