// A page of 32-bit generations in shared memory: how far a transfer is, layer by layer, and how far an engine is that it waits for.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <atomic>
#include <cstdint>

namespace terrace::gpu {

/// Whether a counter that stands at `now` has come to `wanted`. Counters go round: what is up to 2^31 - 1 ahead has been
/// reached. It is the comparison of cuStreamWaitValue32.
constexpr bool reached(uint32_t now, uint32_t wanted) { return static_cast<int32_t>(now - wanted) >= 0; }

/// A generation of a slot.
struct generation {
  uint32_t slot = 0;
  uint32_t value = 0;
};

/// The page, mapped. Devices write and await slots in the order of their streams; processors may do so, too. Safe from all threads
/// and processes.
///
/// A waiter that comes before the writer waits: the value is there or not, and nothing has to be recorded first. A slot is used again
/// only with a greater generation, so an old value never counts as the new one.
class generation_page {
 public:
  static constexpr uint32_t slots_max = 1 << 16;

  /// A new page with all slots at 0. Errors: `bad_request`, `no_space`.
  static result<generation_page> make(uint32_t slots);
  /// One that another process has made. Errors: `denied` when it could shrink under us.
  static result<generation_page> open(unique_fd descriptor);

  /// To send to another process.
  int descriptor() const { return descriptor_.get(); }
  uint32_t slots() const { return static_cast<uint32_t>(memory_.size() / sizeof(uint32_t)); }
  const mapping& memory() const { return memory_; }

  /// Whatever was written before the value is visible to who reads it here.
  uint32_t value(uint32_t slot) const { return word(slot).load(std::memory_order_acquire); }
  bool has(generation wanted) const { return reached(value(wanted.slot), wanted.value); }
  /// Writes the value and wakes who waits for it on a processor. What was written before is visible with it.
  void write(generation next) const;
  /// The same, unless the slot has come to it already.
  void advance(generation next) const;
  /// Wakes who waits on a processor for a value that a device has written.
  void wake(uint32_t slot) const;
  /// Blocks until the slot has come to `wanted`.
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
