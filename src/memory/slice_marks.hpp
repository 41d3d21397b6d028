// A mark for each slice of a region.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace terrace {

/// One bit for each slice. The bits take memory, 64 KiB for a TiB in slices of 2 MiB, only from the first
/// mark on, so that registering a region does not wait for it. Safe on any thread.
class slice_marks {
 public:
  static constexpr uint64_t slices_max = 1 << 26; ///< 128 TiB in slices of 2 MiB

  explicit slice_marks(uint64_t slices) : slices_(slices) {}

  /// Marks the slice. Returns true if it had no mark yet, to only one of the threads that ask. Returns false
  /// for a slice that the region does not have, for every slice if there are more than `slices_max`, and if
  /// there is no memory for marks.
  bool add(uint64_t slice);
  bool has(uint64_t slice) const;

 private:
  static constexpr uint64_t word_bits = 64;
  using word = std::atomic<uint64_t>;

  const uint64_t slices_;
  std::once_flag once_;
  std::unique_ptr<word[]> made_;
  std::atomic<word*> words_{nullptr}; ///< null: there are no marks
};

} // namespace terrace
