#include "runtime/received_descriptors.hpp"
#include "runtime/io_messages.hpp"

#include <caf/detail/tuple_vals.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace terrace::runtime {

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

} // namespace terrace::runtime
