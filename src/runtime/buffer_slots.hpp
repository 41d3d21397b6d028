// Which part of which arena each slot of a ring's table of fixed buffers holds.
#pragma once

#include "runtime/ring.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace::runtime {

class buffer_slots {
 public:
  struct range {
    uint32_t first = 0;
    uint32_t count = 0; ///< 0: the table is full
  };

  explicit buffer_slots(uint32_t capacity) : capacity_(capacity) {}

  uint32_t capacity() const { return capacity_; }
  bool any() const { return !slots_.empty(); }
  void* data(uint32_t slot) const { return slots_[slot].data; }
  uint64_t size(uint32_t slot) const { return slots_[slot].size; }

  /// Cuts [data, data + size) into slots of `buffer_slot_bytes`, the last one shorter.
  range reserve(void* data, uint64_t size) {
    uint64_t count = (size + buffer_slot_bytes - 1) / buffer_slot_bytes;
    if (size == 0 || count > capacity_ - slots_.size())
      return {};
    range out{static_cast<uint32_t>(slots_.size()), static_cast<uint32_t>(count)};
    for (uint64_t done = 0; done < size; done += buffer_slot_bytes)
      slots_.push_back({static_cast<std::byte*>(data) + done, std::min(buffer_slot_bytes, size - done)});
    return out;
  }

  /// Takes back the last `reserve`, whose pages the kernel would not pin.
  void release(range last) { slots_.resize(last.first); }

  /// Whether all of [data, data + length) lies in that slot: the kernel answers EFAULT otherwise.
  bool holds(int slot, const void* data, uint64_t length) const {
    if (slot < 0 || static_cast<size_t>(slot) >= slots_.size())
      return false;
    auto& s = slots_[static_cast<size_t>(slot)];
    auto* begin = static_cast<const std::byte*>(data);
    return begin >= s.data && length <= s.size && static_cast<uint64_t>(begin - s.data) <= s.size - length;
  }

  bool table_registered = false;

 private:
  struct piece {
    std::byte* data;
    uint64_t size;
  };
  uint32_t capacity_;
  std::vector<piece> slots_;
};

} // namespace terrace::runtime
