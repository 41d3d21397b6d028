// The io_port over any ring: keeps the records and turns completions into messages.
#pragma once

#include "runtime/io_port.hpp"
#include "runtime/operation_pool.hpp"
#include "runtime/ring.hpp"

#include <functional>
#include <memory>

namespace terrace::runtime {

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
