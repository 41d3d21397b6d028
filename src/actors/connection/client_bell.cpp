#include "actors/connection/client_bell.hpp"

#include "actors/connection/frame_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cassert>
#include <cerrno>
#include <utility>

namespace terrace::actors {

result<unique_fd> client_bell::descriptor() {
  auto of = shared_ ? shared_ : std::make_shared<shared>();
  if (!of->event)
    of->event = unique_fd(::eventfd(0, EFD_CLOEXEC));
  unique_fd given(of->event ? ::fcntl(of->event.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!given)
    return fail(errc::busy, "the daemon has no descriptors left");
  if (!shared_) {
    shared_ = std::move(of);
    read();
  }
  return given;
}

bool client_bell::heard(int32_t result) {
  listening_ = {};
  if (!shared_)
    return false;
  bool polled = std::exchange(polls_, false);
  if (result > 0 || result == -EINTR)
    read();
  else if (result != -ECANCELED) // the client has made it non-blocking, or there was no memory
    poll();
  return result > 0 && !polled;
}

void client_bell::take_down() {
  if (listening_ != runtime::operation_id{})
    port_.cancel(listening_);
  shared_ = nullptr;
}

void client_bell::read() {
  assert(listening_ == runtime::operation_id{}); // one at a time: it has one buffer
  runtime::io_request operation;
  operation.code = runtime::io_code::read;
  operation.fd = shared_->event.get();
  operation.data = &shared_->rings;
  operation.length = sizeof shared_->rings;
  operation.keep_alive = shared_;
  listening_ = port_.submit(std::move(operation), owner_, io_tag::bell);
}

void client_bell::poll() {
  assert(listening_ == runtime::operation_id{});
  polls_ = true;
  runtime::io_request operation;
  operation.code = runtime::io_code::poll;
  operation.fd = shared_->event.get();
  operation.events = POLLIN;
  operation.keep_alive = shared_;
  listening_ = port_.submit(std::move(operation), owner_, io_tag::bell);
}

} // namespace terrace::actors
