// What a tier that outlives the daemon knows of its objects beyond the table: the generation of each write, and which
// object is before it in its chain. It says what a journal has to hear. No actor inside.
#pragma once

#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"
#include "storage/index_record.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

/// A record as a tier makes it: whoever writes it down puts the store's number of the space into it.
struct index_change {
  index_record record;
  space_id in{};
};

/// Belongs to one tier, beside its table: 12 bytes an object. Generations ascend in the order of reservation, and a parent
/// is reserved before its child; so a slot whose present generation is higher than the child's holds somebody else, and
/// a link of 4 bytes is enough.
class durable_index {
 public:
  /// Higher than all that the store has seen.
  explicit durable_index(uint64_t next_generation) : next_generation_(next_generation) {}

  /// The object was just reserved; `parent` may be empty or unknown. Returns its generation.
  uint64_t reserve(const resident_table& table, object_id id, entry_key parent);

  /// The object was found after a restart.
  void restore(object_id id, uint64_t generation, std::optional<object_id> parent);

  uint64_t generation_of(object_id id) const { return generations_[resident_table::slot_of(id)]; }

  /// The object is complete; it leaves now (call before it is erased).
  void published(const resident_table& table, object_id id);
  void removed(const resident_table& table, object_id id);

  /// In the order in which it happened.
  std::vector<index_change> take_changes() { return std::exchange(changes_, {}); }

  /// What lookups find in `count` slots from `first` on, as records of publications.
  std::vector<index_change> image(const resident_table& table, uint32_t first, uint32_t count) const;

  /// Generations of this epoch from now on.
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
