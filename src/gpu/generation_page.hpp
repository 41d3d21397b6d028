// A page of 32-bit generations in shared memory. They show the progress of a transfer, layer by layer, and of
// an engine for which the transfer waits.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/reached.hpp"
#include "base/unique_fd.hpp"

#include <atomic>
#include <cstdint>

namespace terrace::gpu {

using terrace::reached;

/// A generation of a slot.
struct generation {
  uint32_t slot = 0;
  uint32_t value = 0;
};

/// The mapped page. Devices write slots and wait for them in the order of their streams; processors can do so
/// too. Safe on all threads and processes.
///
/// A waiter may come before the writer, because nothing has to be recorded first. A slot is reused only with
/// a greater generation, so an old value never counts as a new one.
class generation_page {
 public:
  static constexpr uint32_t slots_max = 1 << 16;

  /// Makes a page with all slots at 0. Errors: `bad_request`, `no_space`.
  static result<generation_page> make(uint32_t slots);
  /// Opens a page created by another process. Errors: `denied` if it is not sealed against shrinking.
  static result<generation_page> open(unique_fd descriptor);

  /// The descriptor to send to another process.
  int descriptor() const { return descriptor_.get(); }
  uint32_t slots() const { return static_cast<uint32_t>(memory_.size() / sizeof(uint32_t)); }
  const mapping& memory() const { return memory_; }

  /// Everything written before the value is visible after this read.
  uint32_t value(uint32_t slot) const { return word(slot).load(std::memory_order_acquire); }
  bool has(generation wanted) const { return reached(value(wanted.slot), wanted.value); }
  /// Writes the value and wakes waiting processors. Everything written before is visible with it.
  void write(generation next) const;
  /// Writes the value unless the slot has already reached it.
  void advance(generation next) const;
  /// Wakes processors that wait for a value written by a device.
  void wake(uint32_t slot) const;
  /// Blocks until the slot has reached `wanted`.
  void wait(generation wanted) const;

 private:
  generation_page(unique_fd descriptor, mapping memory)
      : descriptor_(std::move(descriptor)), memory_(std::move(memory)) {}
  std::atomic_ref<uint32_t> word(uint32_t slot) const {
    return std::atomic_ref(reinterpret_cast<uint32_t*>(memory_.data())[slot]);
  }

  unique_fd descriptor_;
  mapping memory_;
};

} // namespace terrace::gpu
