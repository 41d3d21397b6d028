// The host memory that a disk reads into and writes from, and the slots of registered buffers that its segments have in
// the ring of its worker. Registered memory is pinned, and a transfer takes less processor time.
#pragma once

#include "memory/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Belongs to one disk actor. `Port`: what registers memory, a `runtime::io_port`.
class registered_memory {
 public:
  /// A slot has `slot_bytes`; larger segments have several in a row.
  registered_memory(std::vector<std::shared_ptr<const arena>> segments, uint64_t slot_bytes)
      : slot_bytes_(slot_bytes) {
    for (auto& memory : segments)
      segments_.push_back({std::move(memory), -1});
  }

  /// The segments are committed. Those that the kernel refuses use plain buffers.
  template <class Port>
  void register_all(Port& port) {
    for (segment& each : segments_)
      if (each.slot < 0)
        each.slot = port.register_arena(each.memory->data(), each.memory->size());
  }

  /// No effect if it is known: it was already there when the disk was added. Registered only if `committed`.
  template <class Port>
  void add(Port& port, const std::shared_ptr<const arena>& memory, bool committed) {
    auto is = [&](const segment& known) { return known.memory == memory; };
    if (std::any_of(segments_.begin(), segments_.end(), is))
      return;
    int slot = committed ? port.register_arena(memory->data(), memory->size()) : -1;
    segments_.push_back({memory, slot});
  }

  /// The segment that begins there is empty.
  template <class Port>
  void forget(Port& port, const std::byte* begin) {
    std::erase_if(segments_, [&](const segment& each) {
      bool is = each.memory->data() == begin;
      if (is)
        port.unregister_arena(each.slot, each.memory->size());
      return is;
    });
  }

  /// The slot in which the memory begins, or -1: use plain buffers.
  int slot_of(const std::byte* begin, uint64_t bytes) const {
    for (const segment& each : segments_)
      if (each.slot >= 0 && begin >= each.memory->data() &&
          begin + bytes <= each.memory->data() + each.memory->size())
        return each.slot + static_cast<int>(static_cast<uint64_t>(begin - each.memory->data()) / slot_bytes_);
    return -1;
  }

 private:
  struct segment {
    std::shared_ptr<const arena> memory;
    int slot = -1; ///< the first; -1: plain buffers
  };
  uint64_t slot_bytes_;
  std::vector<segment> segments_;
};

} // namespace terrace
