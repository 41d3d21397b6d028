// A disk tier as small as can be: objects with real headers and payloads on a simulated device, an index, a first-fit
// allocator, and the journal that keeps the index. Tests drive it step by step and let it crash.
#pragma once

#include "simulated_device.hpp"

#include "storage/index_journal.hpp"
#include "storage/recovery.hpp"

#include <map>
#include <optional>

namespace terrace {

class modelled_volume {
 public:
  static constexpr uint64_t file_bytes = 2ULL << 20;
  static constexpr uint32_t spaces = 3;

  explicit modelled_volume(uint64_t seed);

  // ---- what a tier does ----
  /// Writes an object of a random size, if there is room and it is not there.
  void store(uint32_t space, uint64_t chunk);
  /// Evicts any object; its extent is free at once.
  void evict();
  /// Clears one space or all.
  void clear(std::optional<uint32_t> space);
  /// One step towards a checkpoint: begins it, hands over some slots of the index, or ends it.
  void checkpoint_step(size_t slots);

  // ---- what a disk does ----
  /// Takes the operation that the journal waits for, and completes what was taken. False: there is none.
  bool begin_io();
  bool complete_io(bool good = true);
  /// Does what a daemon does that is told to end: writes everything, and a checkpoint.
  void shut_down();

  // ---- crash and restart ----
  /// The process dies, and with faults the machine does, too. Checks what is found then, and goes on with it. Counts the
  /// objects that are still there byte by byte.
  size_t restart(const simulated_device::crash_faults& faults = {});

  size_t objects() const { return index_.size(); }
  index_journal& journal() { return *journal_; }
  simulated_device& device() { return device_; }
  std::mt19937_64& dice() { return dice_; }
  const recovery_counts& found() const { return found_; }
  /// True if all records that the journal was told of have been written so far, so that a death of the
  /// process loses none of them.
  bool exact() const { return exact_ && journal_->counts().lost == 0; }

 private:
  using name = std::pair<uint32_t, uint64_t>; ///< space, chunk
  using index = std::map<name, index_record>;

  void open(superblock block);
  bool is_intact(const index_record& record);
  void remember(const journal_io& written);
  void apply(index& to, const index_record& record) const;
  void check(const recovered_volume& found);

  std::mt19937_64 dice_;
  simulated_device device_;
  std::optional<index_journal> journal_;
  index index_;
  index journalled_; ///< the index according to the journal on the device
  std::map<uint64_t, uint64_t> extents_;
  std::map<uint32_t, bool> told_; ///< spaces that the journal knows
  uint64_t next_generation_ = 0;
  std::optional<journal_io> in_flight_;
  std::optional<name> image_from_;               ///< where the image continues
  std::map<uint32_t, uint64_t> answered_floors_; ///< epochs of clears that were answered
  recovery_counts found_;
  bool exact_ = true;
};

} // namespace terrace
