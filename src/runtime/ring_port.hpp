// The io_port over any ring: keeps the records and turns completions into messages.
#pragma once

#include "runtime/io_port.hpp"
#include "runtime/ring.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace terrace::runtime {

// Records of the operations in flight. From submission until its completion has been reaped, a record owns
// what its operation needs: the request's `keep_alive` and a strong reference to the actor, even if the actor
// ends. Records are reused, so an operation needs no allocation; a generation in the identifier distinguishes
// the users of a record.

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

// Descriptors arrive as numbers in a completion (accept) or in a control buffer (recvmsg). The message owns
// them until the actor's handler has received it; if the actor ends first, they are closed with the message.

bool carries_descriptors(const io_request& request, int32_t result);

/// An `io_done` message that closes the descriptors unless its content was accessed, which CAF does only when
/// a living actor handles it.
caf::mailbox_element_ptr make_descriptor_message(const io_done& done, const io_request& request);

/// Belongs to the thread that calls `open`.
class ring_port final : public io_port {
 public:
  explicit ring_port(uint8_t number) : pool_(number) {}

  /// Call before the first `submit`. Completions are enqueued to their actors with `unit` as execution unit
  /// (null: CAF's scheduler decides).
  void open(std::unique_ptr<ring> kernel, caf::execution_unit* unit);

  /// Sets the handler for cancels of another ring's operations.
  void forward_cancels(std::function<void(operation_id)> to) { forward_ = std::move(to); }

  operation_id submit(io_request request, const caf::strong_actor_ptr& owner, uint64_t tag) override;
  void cancel(operation_id id) override;
  int register_arena(void* data, uint64_t size) override;
  void unregister_arena(int slot, uint64_t size) override;
  ring_features features() const override;

  /// Cancels every operation of an actor; called when an actor with a home ends.
  void cancel_all(const caf::actor_control_block* owner);

  /// Turns available completions into messages. Returns their number; no system call.
  size_t deliver();

  size_t in_flight() const { return pool_.active(); }

  /// The ring; null before `open`. Still valid after `close`, so that other threads may `wake` it.
  ring* kernel() { return ring_.get(); }

  /// Cancels everything, waits until nothing is in flight and closes the ring. Later submits are dropped:
  /// only actors that are being cleaned up make them.
  int close();

 private:
  void finish(actor_operation& record, int32_t result, uint32_t flags);

  operation_pool pool_;
  std::unique_ptr<ring> ring_;
  caf::execution_unit* unit_ = nullptr;
  std::function<void(operation_id)> forward_;
  bool closed_ = false;
};

} // namespace terrace::runtime
