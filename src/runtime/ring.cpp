#include "runtime/ring.hpp"

#include "runtime/uring.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::runtime {

// The eventfd blocks on purpose: io_uring completes a read of an empty O_NONBLOCK descriptor with EAGAIN
// instead of waiting.
wake_event::wake_event() : fd_(::eventfd(0, EFD_CLOEXEC)) {}

void wake_event::signal() noexcept {
  uint64_t one = 1;
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

namespace {

class refusing_ring final : public ring {
 public:
  explicit refusing_ring(int error_number) : error_(error_number) {}

  void start(operation& op) override { refused_.push_back(&op); }
  void cancel(operation&) override {}

  size_t reap(std::span<completion> out) override {
    size_t n = std::min(out.size(), refused_.size());
    for (size_t i = 0; i < n; ++i) {
      out[i] = {refused_.front(), -error_, 0};
      refused_.pop_front();
    }
    return n;
  }

  bool has_unsubmitted() const override { return false; }
  bool wants_enter() const override { return false; }
  bool has_ready() const override { return !refused_.empty(); }
  int enter() override { return 0; }

  int wait() override {
    if (refused_.empty())
      (void) !::read(wake_.fd(), wake_.value(), sizeof(uint64_t));
    return 0;
  }

  void wake() noexcept override { wake_.signal(); }
  int register_arena(void*, uint64_t) override { return -1; }
  void unregister_arena(int, uint64_t) override {}
  ring_features features() const override { return {}; }
  void close() override {}

 private:
  int error_;
  wake_event wake_;
  std::deque<operation*> refused_;
};

} // namespace

std::unique_ptr<ring> make_refusing_ring(int error_number) {
  return std::make_unique<refusing_ring>(error_number);
}

} // namespace terrace::runtime
