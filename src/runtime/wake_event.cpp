#include "runtime/wake_event.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace terrace::runtime {

// The eventfd blocks on purpose: io_uring completes a read of an empty O_NONBLOCK descriptor with EAGAIN
// instead of waiting.
wake_event::wake_event() : fd_(::eventfd(0, EFD_CLOEXEC)) {}

void wake_event::signal() noexcept {
  uint64_t one = 1;
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

} // namespace terrace::runtime
