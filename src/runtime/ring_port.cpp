#include "runtime/ring_port.hpp"

#include "runtime/io_port.hpp"

#include <array>
#include <caf/abstract_actor.hpp>
#include <caf/detail/tuple_vals.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
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

namespace {

void close_received(msghdr& message) {
  for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      ::close(fd);
    }
  }
}

using io_done_tuple = caf::detail::tuple_vals_impl<caf::type_erased_tuple, io_done>;

class descriptor_message final : public caf::mailbox_element, public io_done_tuple {
 public:
  descriptor_message(const io_done& done, const io_request& request)
      : caf::mailbox_element(nullptr, caf::make_message_id(), {}), io_done_tuple(done),
        accepted_(request.code == io_code::accept ? done.result : -1),
        message_(request.code == io_code::recvmsg ? request.message : nullptr),
        keep_alive_(request.keep_alive) {}

  ~descriptor_message() override {
    if (claimed_)
      return;
    if (accepted_ >= 0)
      ::close(accepted_);
    if (message_ != nullptr)
      close_received(*message_);
  }

  caf::type_erased_tuple& content() override {
    claimed_ = true;
    return *this;
  }

  const caf::type_erased_tuple& content() const override {
    claimed_ = true;
    return *this;
  }

  caf::message move_content_to_message() override {
    claimed_ = true;
    return caf::make_message(done());
  }

  caf::message copy_content_to_message() const override {
    claimed_ = true;
    return caf::make_message(done());
  }

 private:
  io_done done() const { return std::get<0>(this->data()); }

  int accepted_;
  msghdr* message_;
  std::shared_ptr<void> keep_alive_;
  mutable bool claimed_ = false;
};

} // namespace

bool carries_descriptors(const io_request& request, int32_t result) {
  if (result < 0)
    return false;
  return request.code == io_code::accept || (request.code == io_code::recvmsg && request.message != nullptr &&
                                             request.message->msg_controllen != 0);
}

caf::mailbox_element_ptr make_descriptor_message(const io_done& done, const io_request& request) {
  return caf::mailbox_element_ptr{new descriptor_message(done, request)};
}

actor_operation& operation_pool::take() {
  if (free_.empty()) {
    auto first = static_cast<uint32_t>(blocks_.size()) * block_size;
    blocks_.push_back(std::make_unique<actor_operation[]>(block_size));
    for (uint32_t i = block_size; i-- > 0;) {
      blocks_.back()[i].slot = first + i;
      free_.push_back(first + i);
    }
  }
  auto slot = free_.back();
  free_.pop_back();
  auto& record = blocks_[slot / block_size][slot % block_size];
  record.active = true;
  ++active_;
  return record;
}

void operation_pool::give_back(actor_operation& record) {
  record.active = false;
  ++record.generation;
  --active_;
  free_.push_back(record.slot);
}

actor_operation* operation_pool::find(operation_id id) {
  auto value = static_cast<uint64_t>(id);
  auto slot = static_cast<uint32_t>(value);
  if (ring_of(id) != ring_number_ || slot / block_size >= blocks_.size())
    return nullptr;
  auto& record = blocks_[slot / block_size][slot % block_size];
  if (!record.active || (record.generation & 0xffffff) != ((value >> 32) & 0xffffff))
    return nullptr;
  return &record;
}

} // namespace terrace::runtime
