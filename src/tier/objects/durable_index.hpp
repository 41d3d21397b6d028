// The part of a durable tier's index beyond the table: the generation of each write, and the previous object
// of each chain. It produces the changes for the journals. Contains no actor.
#pragma once

#include "index/index_record.hpp"
#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

/// A record as produced by a tier; the journal fills in the volume's number of the space.
struct index_change {
  index_record record;
  space_id space{};
  bool unwanted = false; ///< of a removal: nobody refers to the object any more
};

/// Belongs to one tier, beside its table: 12 bytes per object. Generations ascend in the order of
/// reservation, and a parent is reserved before its child; so if the present generation of a slot is higher
/// than the child's, the slot holds another object, and a link of 4 bytes is sufficient.
class durable_index {
 public:
  /// `next_generation` is higher than all generations of the volume.
  explicit durable_index(uint64_t next_generation) : next_generation_(next_generation) {}

  /// The object was just reserved; `parent` may be empty or unknown. Returns its generation.
  uint64_t reserve(const resident_table& table, object_id id, entry_key parent);

  /// The object was recovered after a restart.
  void restore(object_id id, uint64_t generation, std::optional<object_id> parent);

  uint64_t generation_of(object_id id) const { return generation_at(resident_table::slot_of(id)); }
  uint64_t generation_at(uint32_t slot) const { return generations_[slot]; }

  /// `published`: the object is complete. `removed`: call it before the object is erased.
  void published(const resident_table& table, object_id id);
  void removed(const resident_table& table, object_id id, bool unwanted = false);

  /// Returns the changes in the order of the events.
  std::vector<index_change> take_changes() { return std::exchange(changes_, {}); }

  /// Returns the objects visible to lookups in `count` slots starting at `first`, as records of publications.
  std::vector<index_change> image(const resident_table& table, uint32_t first, uint32_t count) const;

  /// From now on generations are of this epoch.
  void begin_epoch(uint64_t epoch);
  uint64_t epoch() const { return epoch_of(next_generation_); }

  size_t allocated_bytes() const { return generations_.allocated_bytes() + parents_.allocated_bytes(); }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  void set(uint32_t slot, uint64_t generation, uint32_t parent);
  index_change record_of(const resident_table& table, uint32_t slot) const;

  uint64_t next_generation_;
  segmented_array<uint64_t> generations_; ///< by slot
  segmented_array<uint32_t> parents_;     ///< by slot: the parent's slot, or `none`
  std::vector<index_change> changes_;
};

} // namespace terrace
