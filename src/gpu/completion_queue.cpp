#include "gpu/completion_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::gpu {

result<std::shared_ptr<completion_queue>> completion_queue::make() {
  unique_fd descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor)
    return fail(errc::no_space, "no descriptor for a stream's completions");
  return std::shared_ptr<completion_queue>(new completion_queue(std::move(descriptor)));
}

void completion_queue::push(over_part part) {
  {
    std::lock_guard lock(mutex_);
    parts_.push_back(std::move(part));
  }
  signal();
}

void completion_queue::push(std::span<const uint64_t> tickets) {
  {
    std::lock_guard lock(mutex_);
    for (uint64_t ticket : tickets)
      parts_.push_back({ticket, {}});
  }
  signal();
}

void completion_queue::signal() {
  uint64_t one = 1;
  // The write fails only with 2^64 - 2 pending signals, and then the descriptor is readable anyway.
  [[maybe_unused]] auto written = write(descriptor_.get(), &one, sizeof one);
}

std::vector<over_part> completion_queue::take() {
  uint64_t count = 0;
  // The counter is read first: a part that arrives in between makes the descriptor readable again.
  [[maybe_unused]] auto bytes = read(descriptor_.get(), &count, sizeof count);
  std::lock_guard lock(mutex_);
  return std::exchange(parts_, {});
}

} // namespace terrace::gpu
