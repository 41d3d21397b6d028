// The host memory that a disk reads into and writes from, and the slots of registered buffers that its segments have in
// the ring of its worker. Registered memory is pinned, and transfers with it take less processor time.
#pragma once

#include "memory/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

/// Memory that is committed beforehand is registered as a whole. Other memory is committed when it is used: a slot of
/// it is registered once as many bytes as the slot has were moved there, and all of its pages are in memory.
///
/// Belongs to one disk actor. `Port` registers memory (a `runtime::io_port`).
class registered_memory {
 public:
  /// A slot has `slot_bytes`; larger segments have several in a row. `committed` tells whether all pages of this memory
  /// exist; it is called once as many bytes as a slot has were moved, and then less and less often.
  registered_memory(std::vector<std::shared_ptr<const arena>> segments, uint64_t slot_bytes,
                    std::function<bool(const std::byte*, uint64_t)> committed = all_resident)
      : slot_bytes_(slot_bytes), committed_(std::move(committed)) {
    for (auto& memory : segments)
      add(std::move(memory));
  }

  /// Call when the segments are committed. Segments that the kernel refuses use plain buffers.
  template <class Port>
  void register_all(Port& port) {
    for (segment& each : segments_)
      register_whole(port, each);
  }

  /// Has no effect if the segment is known, because it was already there when the disk was added. Registers
  /// it only if `committed`.
  template <class Port>
  void add(Port& port, const std::shared_ptr<const arena>& memory, bool committed) {
    auto is = [&](const segment& known) { return known.memory == memory; };
    if (std::any_of(segments_.begin(), segments_.end(), is))
      return;
    add(memory);
    if (committed)
      register_whole(port, segments_.back());
  }

  /// The segment that begins there is empty.
  template <class Port>
  void forget(Port& port, const std::byte* begin) {
    std::erase_if(segments_, [&](const segment& each) {
      bool is = each.memory->data() == begin;
      if (is && each.whole)
        port.unregister_arena(each.parts.front().slot, each.memory->size());
      for (size_t n = 0; is && !each.whole && n < each.parts.size(); ++n)
        if (each.parts[n].slot >= 0)
          port.unregister_arena(each.parts[n].slot, bytes_of(each, n));
      return is;
    });
  }

  /// Returns the slot in which the memory begins, or -1: use plain buffers.
  int slot_of(const std::byte* begin, uint64_t bytes) const {
    const segment* memory = find(begin, bytes);
    return memory == nullptr ? -1 : memory->parts[part_of(*memory, begin)].slot;
  }

  /// Returns the slot for a transfer, and counts its bytes.
  template <class Port>
  int use(Port& port, const std::byte* begin, uint64_t bytes) {
    auto* memory = const_cast<segment*>(find(begin, bytes));
    if (memory == nullptr)
      return -1;
    size_t number = part_of(*memory, begin);
    part& where = memory->parts[number];
    if (where.slot >= 0 || where.refused)
      return where.slot;
    where.moved += bytes;
    if (where.moved < where.looks_at)
      return -1;
    std::byte* first = memory->memory->data() + number * slot_bytes_;
    uint64_t size = bytes_of(*memory, number);
    if (committed_(first, size)) {
      where.slot = port.register_arena(first, size);
      where.refused = where.slot < 0;
    }
    where.looks_at = 2 * where.moved;
    return where.slot;
  }

 private:
  /// A part of a segment, as large as a slot.
  struct part {
    int slot = -1; ///< -1: plain buffers
    bool refused = false;
    uint64_t moved = 0;    ///< bytes moved with plain buffers
    uint64_t looks_at = 0; ///< `moved` at the next check whether it is committed
  };
  struct segment {
    std::shared_ptr<const arena> memory;
    std::vector<part> parts;
    bool whole = false; ///< registered together, in consecutive slots
  };

  void add(std::shared_ptr<const arena> memory) {
    segment made{std::move(memory), {}, false};
    made.parts.resize((made.memory->size() + slot_bytes_ - 1) / slot_bytes_);
    for (size_t n = 0; n < made.parts.size(); ++n)
      made.parts[n].looks_at = bytes_of(made, n);
    segments_.push_back(std::move(made));
  }

  template <class Port>
  void register_whole(Port& port, segment& each) {
    if (each.whole)
      return;
    if (std::all_of(each.parts.begin(), each.parts.end(), [](const part& one) { return one.slot < 0; })) {
      int first = port.register_arena(each.memory->data(), each.memory->size());
      each.whole = first >= 0;
      for (size_t n = 0; each.whole && n < each.parts.size(); ++n)
        each.parts[n].slot = first + static_cast<int>(n);
      return;
    }
    for (size_t n = 0; n < each.parts.size(); ++n)
      if (each.parts[n].slot < 0)
        each.parts[n].slot = port.register_arena(each.memory->data() + n * slot_bytes_, bytes_of(each, n));
  }

  uint64_t bytes_of(const segment& memory, size_t number) const {
    return std::min(slot_bytes_, memory.memory->size() - number * slot_bytes_);
  }
  size_t part_of(const segment& memory, const std::byte* begin) const {
    return static_cast<uint64_t>(begin - memory.memory->data()) / slot_bytes_;
  }
  const segment* find(const std::byte* begin, uint64_t bytes) const {
    for (const segment& each : segments_)
      if (begin >= each.memory->data() && begin + bytes <= each.memory->data() + each.memory->size())
        return &each;
    return nullptr;
  }

  uint64_t slot_bytes_;
  std::function<bool(const std::byte*, uint64_t)> committed_;
  std::vector<segment> segments_;
};

} // namespace terrace
