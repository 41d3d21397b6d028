#include "cli/interruption.hpp"

#include <csignal>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::cli {

namespace {

std::atomic<interruption*> current{nullptr};

void on_interrupt(int) {
  if (interruption* it = current)
    it->request();
}

} // namespace

interruption::interruption() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  current = this;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART; // a request in progress is finished
  sigaction(SIGINT, &action, nullptr);
}

interruption::~interruption() {
  std::signal(SIGINT, SIG_DFL);
  current = nullptr;
}

void interruption::request() {
  requested_ = true;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(event_.get(), &one, sizeof one);
}

void interruption::sleep_until(std::chrono::steady_clock::time_point due) const {
  while (!requested_) {
    auto left = std::chrono::nanoseconds(due - std::chrono::steady_clock::now()).count();
    if (left <= 0)
      return;
    timespec time{left / 1'000'000'000, left % 1'000'000'000};
    pollfd wake{event_.get(), POLLIN, 0};
    ppoll(&wake, 1, &time, nullptr);
  }
}

} // namespace terrace::cli
