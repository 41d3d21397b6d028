// The host memory that a disk reads into and writes from, and the slots of registered buffers that its segments have in
// the ring of its worker. Registered memory is pinned, and a transfer takes less processor time.
#pragma once

#include "memory/arena.hpp"
#include "runtime/io_port.hpp"
#include "runtime/ring.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace::actors {

/// Belongs to one disk actor.
class disk_memory {
 public:
  explicit disk_memory(std::vector<std::shared_ptr<const arena>> segments) {
    for (auto& segment : segments)
      segments_.push_back({std::move(segment), -1});
  }

  /// The segments are committed. Those that the kernel refuses use plain buffers.
  void register_all(runtime::io_port& port) {
    for (registered& segment : segments_)
      if (segment.slot < 0)
        segment.slot = port.register_arena(segment.what->data(), segment.what->size());
  }

  /// No effect if it is known: it was already there when the disk was added. Registered only if `committed`.
  void add(runtime::io_port& port, const std::shared_ptr<const arena>& segment, bool committed) {
    auto is = [&](const registered& known) { return known.what == segment; };
    if (std::any_of(segments_.begin(), segments_.end(), is))
      return;
    int slot = committed ? port.register_arena(segment->data(), segment->size()) : -1;
    segments_.push_back({segment, slot});
  }

  /// The segment that begins there is empty.
  void forget(runtime::io_port& port, const std::byte* begin) {
    std::erase_if(segments_, [&](const registered& segment) {
      bool is = segment.what->data() == begin;
      if (is)
        port.unregister_arena(segment.slot, segment.what->size());
      return is;
    });
  }

  /// The slot in which the memory begins, or -1: use plain buffers.
  int slot_of(const std::byte* memory, uint64_t bytes) const {
    for (const registered& segment : segments_)
      if (segment.slot >= 0 && memory >= segment.what->data() &&
          memory + bytes <= segment.what->data() + segment.what->size())
        return segment.slot + static_cast<int>(static_cast<uint64_t>(memory - segment.what->data()) /
                                               runtime::buffer_slot_bytes);
    return -1;
  }

 private:
  struct registered {
    std::shared_ptr<const arena> what;
    int slot = -1; ///< -1: plain buffers
  };
  std::vector<registered> segments_;
};

} // namespace terrace::actors
