// A worker's queue of jobs: first in, first out, with homed and floating jobs told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace terrace::runtime {

enum class job_kind : uint8_t {
  floating, ///< may run on any worker
  homed,    ///< runs on this worker only: an actor with a home, a shutdown job
};

template <class T>
struct job {
  T* what = nullptr;
  job_kind kind = job_kind::floating;
  int64_t since_ns = 0; ///< when it was queued, to the precision of the loop's clock
};

/// Used by one thread.
template <class T>
class job_queue {
 public:
  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }
  size_t floating() const { return floating_; }

  void push(job<T> item) {
    floating_ += item.kind == job_kind::floating;
    jobs_.push_back(item);
  }

  /// Precondition: not empty.
  job<T> pop() {
    auto item = jobs_.front();
    jobs_.pop_front();
    floating_ -= item.kind == job_kind::floating;
    return item;
  }

  /// Takes the younger half of the floating jobs (rounded down) out, oldest first; the order of what stays is
  /// kept.
  std::vector<job<T>> take_half() {
    std::vector<job<T>> taken;
    std::deque<job<T>> kept;
    size_t stay = floating_ - floating_ / 2;
    size_t seen = 0;
    for (auto& item : jobs_) {
      if (item.kind == job_kind::homed || seen++ < stay)
        kept.push_back(item);
      else
        taken.push_back(item);
    }
    jobs_ = std::move(kept);
    floating_ = stay;
    return taken;
  }

 private:
  std::deque<job<T>> jobs_;
  size_t floating_ = 0;
};

} // namespace terrace::runtime
