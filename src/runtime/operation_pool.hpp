// Records of the operations in flight. From submission until its completion has been reaped, a record owns
// what its operation needs: the request's `keep_alive` and a strong reference to the actor, even if the actor
// ends. Records are reused, so an operation needs no allocation; a generation in the identifier distinguishes
// the users of a record.
#pragma once

#include "runtime/ring.hpp"

#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace terrace::runtime {

struct actor_operation : operation {
  caf::strong_actor_ptr owner;
  uint64_t tag = 0;
  uint32_t slot = 0;
  uint32_t generation = 0;
  bool active = false;
};

/// Used by one thread.
class operation_pool {
 public:
  explicit operation_pool(uint8_t ring_number) : ring_number_(ring_number) {}

  actor_operation& take();

  /// Precondition: the record no longer owns anything.
  void give_back(actor_operation& record);

  operation_id id_of(const actor_operation& record) const {
    return operation_id{(uint64_t{ring_number_} + 1) << 56 | uint64_t{record.generation & 0xffffff} << 32 |
                        record.slot};
  }

  /// The active record with this id, or null.
  actor_operation* find(operation_id id);

  /// The number of the ring that issued the id; -1: none.
  static int ring_of(operation_id id) { return static_cast<int>(static_cast<uint64_t>(id) >> 56) - 1; }

  size_t active() const { return active_; }

  template <class Visit>
  void for_each_active(Visit visit) {
    for (auto& block : blocks_)
      for (uint32_t i = 0; i < block_size; ++i)
        if (block[i].active)
          visit(block[i]);
  }

 private:
  static constexpr uint32_t block_size = 128;

  uint8_t ring_number_;
  size_t active_ = 0;
  std::vector<std::unique_ptr<actor_operation[]>> blocks_;
  std::vector<uint32_t> free_;
};

} // namespace terrace::runtime
