#include "runtime/ring_port.hpp"
#include "runtime/io_messages.hpp"
#include "runtime/received_descriptors.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>

#include <array>
#include <cerrno>
#include <utility>

namespace terrace::runtime {

namespace {

bool ends_quietly(const io_request& request, int32_t result) {
  return request.quiet != nullptr && !request.quiet->announced && std::cmp_equal(result, request.length);
}

} // namespace

void ring_port::open(std::unique_ptr<ring> kernel, caf::execution_unit* unit) {
  ring_ = std::move(kernel);
  unit_ = unit;
}

operation_id ring_port::submit(io_request request, const caf::strong_actor_ptr& owner, uint64_t tag) {
  auto& record = pool_.take();
  auto id = pool_.id_of(record);
  if (closed_ || !ring_) {
    pool_.give_back(record);
    return id;
  }
  record.request = std::move(request);
  record.owner = owner;
  record.tag = tag;
  ring_->start(record);
  return id;
}

void ring_port::cancel(operation_id id) {
  if (closed_)
    return;
  if (auto* record = pool_.find(id))
    ring_->cancel(*record);
  else if (forward_)
    forward_(id);
}

void ring_port::cancel_all(const caf::actor_control_block* owner) {
  if (closed_ || pool_.active() == 0)
    return;
  pool_.for_each_active([&](actor_operation& record) {
    if (record.owner.get() == owner)
      ring_->cancel(record);
  });
}

int ring_port::register_arena(void* data, uint64_t size) {
  return closed_ || !ring_ ? -1 : ring_->register_arena(data, size);
}

void ring_port::unregister_arena(int slot, uint64_t size) {
  if (!closed_ && ring_ && slot >= 0)
    ring_->unregister_arena(slot, size);
}

ring_features ring_port::features() const { return ring_ ? ring_->features() : ring_features{}; }

size_t ring_port::deliver() {
  std::array<completion, 64> ready;
  size_t total = 0;
  for (;;) {
    auto n = ring_->reap(ready);
    for (size_t i = 0; i < n; ++i)
      finish(static_cast<actor_operation&>(*ready[i].op), ready[i].result, ready[i].flags);
    total += n;
    if (n < ready.size())
      return total;
  }
}

void ring_port::finish(actor_operation& record, int32_t result, uint32_t flags) {
  if (ends_quietly(record.request, result)) {
    record.request.quiet->in_flight = false;
    auto owner = std::move(record.owner); // released last, as below
    record.request = {};
    pool_.give_back(record);
    return;
  }
  io_done done{record.tag, pool_.id_of(record), result, flags};
  auto owner = std::move(record.owner);
  auto message = carries_descriptors(record.request, result)
                     ? make_descriptor_message(done, record.request)
                     : caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, done);
  // Released last: it may be the actor's buffer, whose destructor may do anything.
  auto buffer = std::move(record.request.keep_alive);
  record.request = {};
  pool_.give_back(record);
  if (owner)
    owner->get()->enqueue(std::move(message), unit_);
}

int ring_port::close() {
  if (closed_ || !ring_)
    return 0;
  pool_.for_each_active([&](actor_operation& record) { ring_->cancel(record); });
  closed_ = true;
  (void) deliver();
  while (pool_.active() != 0) {
    if (int refused = ring_->wait())
      return refused;
    (void) deliver();
  }
  ring_->close();
  return 0;
}

} // namespace terrace::runtime
