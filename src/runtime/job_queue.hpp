// A worker's queue of jobs: homed and floating ones told apart, each kind first in, first out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  bool again = false;   ///< it has had a turn and was not done
};

/// Floating jobs go first: they are what homed ones, the connections, began and wait for, and others may wait for the same
/// tier. After `floating_in_a_row` of them a homed job has its turn, and also when a floating one was not done in its own
/// turn: so neither kind starves, and who was answered by a busy actor need not wait for all its other clients. Used by
/// one thread.
template <class T>
class job_queue {
 public:
  static constexpr uint32_t floating_in_a_row = 4;

  bool empty() const { return homed_.empty() && floating_.empty(); }
  size_t size() const { return homed_.size() + floating_.size(); }
  size_t floating() const { return floating_.size(); }
  size_t homed() const { return homed_.size(); }

  void push(job<T> item) { (item.kind == job_kind::floating ? floating_ : homed_).push_back(item); }

  /// A job that has had its turn and is not done.
  void push_again(job<T> item) {
    if (item.kind == job_kind::floating)
      run_ = floating_in_a_row;
    item.again = true;
    push(item);
  }

  /// What `pop` would give. Precondition: not empty.
  const job<T>& next() const { return next_is_homed() ? homed_.front() : floating_.front(); }

  /// Precondition: not empty.
  job<T> pop() {
    bool homed = next_is_homed();
    run_ = homed ? 0 : run_ + 1;
    auto& from = homed ? homed_ : floating_;
    auto item = from.front();
    from.pop_front();
    return item;
  }

  /// Takes the younger half of the floating jobs (rounded down) out, oldest first.
  std::vector<job<T>> take_half() {
    auto begin = floating_.end() - static_cast<ptrdiff_t>(floating_.size() / 2);
    std::vector<job<T>> taken(begin, floating_.end());
    floating_.erase(begin, floating_.end());
    return taken;
  }

 private:
  bool next_is_homed() const { return floating_.empty() || (!homed_.empty() && run_ >= floating_in_a_row); }

  std::deque<job<T>> homed_;
  std::deque<job<T>> floating_;
  uint32_t run_ = 0; ///< floating jobs since the last homed one
};

} // namespace terrace::runtime
