#include "memory/teardown.hpp"

#include <malloc.h>
#include <pthread.h>

namespace terrace {

teardown::teardown(const char* name) : thread_([this] { work_off(); }) {
  ::pthread_setname_np(thread_.native_handle(), name);
}

teardown::~teardown() { finish(); }

void teardown::finish() {
  {
    std::lock_guard held(lock_);
    ending_ = true;
  }
  more_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

void teardown::run(std::function<void()> work) noexcept {
  if (std::this_thread::get_id() == id_) {
    work();
    return;
  }
  bool here = false;
  try {
    std::lock_guard held(lock_);
    here = ended_;
    if (!here)
      line_.push_back(std::move(work));
  } catch (const std::bad_alloc&) {
    here = true;
  }
  if (here) {
    work();
    return;
  }
  more_.notify_one();
}

void teardown::work_off() {
  std::unique_lock held(lock_);
  for (;;) {
    more_.wait(held, [this] { return ending_ || !line_.empty(); });
    if (line_.empty()) {
      ended_ = true;
      return;
    }
    auto work = std::move(line_.front());
    line_.pop_front();
    held.unlock();
    work();
    work = nullptr;
    held.lock();
  }
}

namespace {
struct heap_trim {
  ~heap_trim() { ::malloc_trim(0); }
};
} // namespace

keep_alive trim_at_end(const teardown_ptr& by) {
  return std::shared_ptr<heap_trim>(new heap_trim, deleted_by{by});
}

} // namespace terrace
