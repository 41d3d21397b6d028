// The contents of the slots of a ring's fixed buffer table.
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
  bool any() const { return registered_ != 0; }
  void* data(uint32_t slot) const { return slots_[slot].data; }
  uint64_t size(uint32_t slot) const { return slots_[slot].size; }

  /// Divides [data, data + size) into slots of `buffer_slot_bytes`; the last one may be shorter.
  range reserve(void* data, uint64_t size) {
    uint64_t count = (size + buffer_slot_bytes - 1) / buffer_slot_bytes;
    if (size == 0 || capacity_ < slots_.size() || count > capacity_ - slots_.size())
      return {};
    range out{static_cast<uint32_t>(slots_.size()), static_cast<uint32_t>(count)};
    for (uint64_t done = 0; done < size; done += buffer_slot_bytes)
      slots_.push_back({static_cast<std::byte*>(data) + done, std::min(buffer_slot_bytes, size - done)});
    return out;
  }

  /// Empties the slots of [data, data + size), starting at `first`. They are not reused.
  range forget(int first, uint64_t size) {
    range gone{static_cast<uint32_t>(first),
               static_cast<uint32_t>((size + buffer_slot_bytes - 1) / buffer_slot_bytes)};
    for (uint32_t slot = gone.first; slot < gone.first + gone.count && slot < slots_.size(); ++slot)
      slots_[slot] = {nullptr, 0};
    return gone;
  }
  bool registered(uint32_t slot) const { return slot < registered_; }

  /// The first slot of memory that was reserved before, or -1.
  int find(const void* data, uint64_t size) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      uint64_t done = 0;
      for (size_t n = i; n < slots_.size() && done < size; ++n) {
        if (slots_[n].data != static_cast<const std::byte*>(data) + done ||
            slots_[n].size != std::min(buffer_slot_bytes, size - done))
          break;
        done += slots_[n].size;
      }
      if (done == size && size != 0)
        return static_cast<int>(i);
    }
    return -1;
  }

  /// Slots are registered in order; returns the next unregistered one, or -1.
  int next_unregistered() const { return registered_ == slots_.size() ? -1 : static_cast<int>(registered_); }
  void mark_registered() { ++registered_; }
  /// The kernel cannot use the memory of the next slot, but may still use that of later ones.
  void skip() { slots_[registered_++] = {nullptr, 0}; }

  /// The kernel refused the next slot: it and all later ones stay unregistered.
  void give_up() { capacity_ = 0; }
  bool gave_up() const { return capacity_ == 0; }

  /// Removes the last `reserve`, none of whose slots is registered.
  void release(range last) { slots_.resize(last.first); }

  /// True if all of [data, data + length) is in that slot and the slot is registered; otherwise the kernel
  /// would return EFAULT.
  bool holds(int slot, const void* data, uint64_t length) const {
    if (slot < 0 || static_cast<size_t>(slot) >= registered_)
      return false;
    auto& s = slots_[static_cast<size_t>(slot)];
    auto* begin = static_cast<const std::byte*>(data);
    return s.data != nullptr && begin >= s.data && length <= s.size &&
           static_cast<uint64_t>(begin - s.data) <= s.size - length;
  }

  bool table_registered = false;

 private:
  struct piece {
    std::byte* data;
    uint64_t size;
  };
  uint32_t capacity_;
  std::vector<piece> slots_;
  size_t registered_ = 0;
};

} // namespace terrace::runtime
