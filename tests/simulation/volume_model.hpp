// What was acknowledged about a volume, and the check that a volume keeps it after a crash. The model knows only what its
// owner was told; it knows nothing of how the volume is written.
#pragma once

#include "simulated_disk.hpp"

#include "storage/recovery.hpp"
#include "storage/volume_device.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace terrace::simulation {

/// A file of a simulated disk for code that blocks.
class disk_volume final : public volume_device {
 public:
  /// `after_each` is called after each write, sync and change of the size.
  disk_volume(
      simulated_disk& disk, int descriptor, std::function<void()> after_each = [] {})
      : disk_(disk), descriptor_(descriptor), after_each_(std::move(after_each)) {}

  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;
  result<void> write(uint64_t file_offset, std::span<const std::byte> bytes) override;
  result<void> sync() override;
  result<uint64_t> size() override;
  result<void> resize(uint64_t bytes) override;

 private:
  result<void> finish(const char* what, int64_t code);

  simulated_disk& disk_;
  int descriptor_;
  std::function<void()> after_each_;
};

/// Returns an object as the daemon writes it, header and payload. The payload follows from the record, so that an older
/// object of the same key differs.
std::shared_ptr<aligned_buffer> object_bytes(const index_record& record, const superblock& block);

class volume_model {
 public:
  static constexpr const char* path = "/volume";
  static constexpr uint64_t file_bytes = 512ULL << 10;
  static constexpr uint32_t spaces = 3;

  // ---- what the volume said ----

  /// The superblocks with this epoch are durable.
  void opened(uint64_t epoch) { epoch_ = epoch; }
  /// An object is about to be written.
  void writes(const index_record& record);
  /// A clear of one space, or of all, is durable.
  void cleared(std::optional<uint32_t> space, uint64_t floor);
  /// A checkpoint with these objects is durable.
  void promised(std::map<uint64_t, index_record> objects) { promised_ = std::move(objects); }
  /// The object was evicted or cleared.
  void withdrawn(uint64_t generation) { promised_.erase(generation); }

  /// A clear could not be recorded, or was answered with the epoch of a later one that is not durable yet. A crash may lose
  /// the epoch, and the next opening then gives its generations again.
  void epoch_unrecorded() { epoch_unrecorded_ = true; }

  // ---- what must hold ----

  /// Recovers the volume on this disk, as after a restart, and notes each broken promise. Returns the number of objects
  /// that are there byte by byte.
  size_t check(simulated_disk& disk);
  /// True if the object is there byte by byte. An object that passes as this one and is not is noted.
  bool is_intact(volume_reader& from, const superblock& block, const index_record& record);

  const std::vector<std::string>& broken() const { return broken_; }
  /// What would be broken, had each clear been recorded.
  const std::vector<std::string>& excused() const { return excused_; }
  uint64_t promises_checked() const { return promises_checked_; }
  uint64_t clears_checked() const { return clears_checked_; }

 private:
  void broke(const std::string& what) { broken_.push_back(what); }
  void broke_unless(bool excuse, const std::string& what) { (excuse ? excused_ : broken_).push_back(what); }
  bool was_written(const index_record& record) const;
  void check_found(const recovered_volume& found, const superblock& block);
  size_t check_objects(volume_reader& from, const recovered_volume& found, const superblock& block);

  uint64_t epoch_ = 0;
  std::multimap<uint64_t, index_record> written_; ///< by generation
  std::map<uint64_t, index_record> promised_;     ///< by generation
  std::map<uint32_t, uint64_t> floors_;
  bool epoch_unrecorded_ = false;
  std::vector<std::string> broken_;
  std::vector<std::string> excused_;
  uint64_t promises_checked_ = 0;
  uint64_t clears_checked_ = 0;
};

} // namespace terrace::simulation
