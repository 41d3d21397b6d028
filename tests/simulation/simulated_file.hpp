// The contents of one file of a simulated disk: what reads see now, what is durable, and the changes between the two.
#pragma once

#include "random.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace terrace::simulation {

constexpr uint64_t sector_bytes = 512;

/// How much of what was not synced a crash leaves. The kernel and the device may write dirty sectors at any time, in any
/// order, so all of these happen.
enum class survival : uint8_t {
  nothing,
  everything,
  oldest,  ///< the changes up to some point; the last one may be torn
  changes, ///< each change is there or not
  sectors, ///< each sector has any of its versions
};
constexpr uint64_t survivals = 5;

/// A value: a copy is a snapshot.
class simulated_file {
 public:
  uint64_t size() const { return now_.size(); }
  std::span<const std::byte> bytes() const { return now_; }

  /// Returns the number of bytes, fewer at the end of the file.
  uint64_t read(uint64_t offset, std::span<std::byte> into) const;
  /// Grows the file if it ends before.
  void write(uint64_t offset, std::span<const std::byte> bytes);
  void resize(uint64_t bytes);

  /// The number of changes so far. A sync covers those that were made before it began.
  uint64_t changes() const { return synced_ + unsynced_.size(); }
  void sync(uint64_t changes);
  /// The device could not write. As Linux does, the changes are no longer dirty: no later sync writes them. Reads see them
  /// until a crash, which leaves what `how` says.
  void fail_sync(uint64_t changes, survival how, seeded_random& random);
  /// Cuts the power.
  void crash(survival how, seeded_random& random);

  /// Inverts a bit on the medium. Reads see that unless a newer version of the sector waits to be written.
  void flip_bit(uint64_t bit);

 private:
  /// A new size, or new versions of whole sectors.
  struct change {
    uint64_t offset = 0;
    std::shared_ptr<const std::vector<std::byte>> bytes; ///< null: `offset` is the new size
  };

  void keep(uint64_t count, survival how, seeded_random& random);
  void apply(const change& one, uint64_t begin, uint64_t end);
  void apply(const change& one);

  std::vector<std::byte> now_;
  std::vector<std::byte> durable_;
  std::deque<change> unsynced_;
  uint64_t synced_ = 0; ///< changes that are no longer in `unsynced_`
};

} // namespace terrace::simulation
