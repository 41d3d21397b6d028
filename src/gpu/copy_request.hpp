// A copy request of a stream: strided pieces between an engine's region and an object, in parts that become
// usable one by one.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "gpu/generation_page.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace terrace::gpu {

// Completions of a device, signalled to the thread that owns the stream through a descriptor for its event
// loop.

/// A part that has ended, with the number under which it was issued.
struct over_part {
  uint64_t ticket = 0;
  std::optional<error> failure;
};

/// Multiple writers, one reader. Writers are threads of the driver or of the host device: `push` locks a
/// mutex for a few instructions and never blocks on I/O.
class completion_queue {
 public:
  /// Errors: `no_space` if the process has no descriptors left.
  static result<std::shared_ptr<completion_queue>> make();

  /// An eventfd that is readable while there are completions.
  int descriptor() const { return descriptor_.get(); }

  void push(over_part part);
  /// Adds parts that ended without failures, in this order.
  void push(std::span<const uint64_t> tickets);
  /// Makes the descriptor readable without a part.
  void signal();
  /// Returns all completions, in order of arrival. Afterwards the descriptor is not readable until there are more.
  std::vector<over_part> take();

 private:
  explicit completion_queue(unique_fd descriptor) : descriptor_(std::move(descriptor)) {}

  unique_fd descriptor_;
  std::mutex mutex_;
  std::vector<over_part> parts_;
};

class memory;
class attached_page;

enum class direction : uint8_t {
  load,  ///< from objects into regions
  store, ///< from regions into objects
};

/// `count` pieces of `bytes` each. The i-th is at `region_offset + i * region_stride` in the region and at
/// `object_offset + i * object_stride` in the object.
struct strided_copy {
  uint64_t region_offset = 0;
  uint64_t object_offset = 0;
  uint64_t bytes = 0;
  uint64_t region_stride = 0;
  uint64_t object_stride = 0;
  uint64_t count = 1;
};

/// A part that becomes usable as a whole, such as a layer. Pieces may be copied in any order, so no two of
/// them may write the same byte.
struct copy_part {
  std::vector<strided_copy> copies; ///< none: the part only signals
  /// Written when all bytes of the part and of all parts before it have arrived.
  std::optional<generation> signal;
};

struct copy_request {
  uint64_t id = 0; ///< the caller chooses it, unique among those in flight on a stream
  std::shared_ptr<memory> region;
  std::shared_ptr<memory> object;
  std::shared_ptr<attached_page> page; ///< needed for `await` and signals
  /// No byte is read or written before the slot has reached this generation. A cancellation writes it, so an
  /// awaited slot has only one waiter.
  std::optional<generation> await;
  std::vector<copy_part> parts;
};

constexpr uint64_t pieces_per_part_max = 1 << 20;
constexpr size_t parts_per_request_max = 1 << 12;

uint64_t bytes_of(const copy_part& part);

/// Checks that all pieces are within memory of these sizes, and slots within a page of `slots` (0: no page).
/// Errors: `bad_request`.
result<void> check(const copy_request& request, uint64_t region_bytes, uint64_t object_bytes, uint32_t slots);

} // namespace terrace::gpu
