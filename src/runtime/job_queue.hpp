// A worker's queue of jobs: homed and floating ones separately, each first in, first out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace terrace::runtime {

enum class job_kind : uint8_t {
  floating, ///< may run on any worker
  homed,    ///< runs on this worker only: an actor with a home, or a shutdown job
};

template <class T>
struct job {
  T* what = nullptr;
  job_kind kind = job_kind::floating;
  int64_t since_ns = 0; ///< when it was queued, at the precision of the loop's clock
  bool again = false;   ///< the job had a turn and has more to do
};

/// Floating jobs go first: connections, which are homed, started them and wait for them, and others may wait
/// for the same tier. After `floating_in_a_row` of them a homed job gets a turn, and also when a floating job
/// did not finish in its own turn. So neither kind starves, and a client answered by a busy actor does not
/// wait for all its other clients.
///
/// Among homed jobs, those that did not finish in their last turn (long lookups) go after those just woken: a
/// short request does not wait for all long ones. After `fresh_in_a_row` fresh jobs one long job gets a turn.
/// Used by one thread.
template <class T>
class job_queue {
 public:
  static constexpr uint32_t floating_in_a_row = 4;
  static constexpr uint32_t fresh_in_a_row = 8;

  bool empty() const { return homed() == 0 && floating_.empty(); }
  size_t size() const { return homed() + floating_.size(); }
  size_t floating() const { return floating_.size(); }
  size_t homed() const { return fresh_.size() + long_.size(); }

  void push(job<T> item) {
    (item.kind == job_kind::floating ? floating_ : item.again ? long_ : fresh_).push_back(item);
  }

  /// Queues a job that has had its turn and has more to do.
  void push_again(job<T> item) {
    if (item.kind == job_kind::floating)
      run_ = floating_in_a_row;
    item.again = true;
    push(item);
  }

  /// The job that `pop` would return. Precondition: not empty.
  const job<T>& next() const {
    return !next_is_homed() ? floating_.front() : next_is_long() ? long_.front() : fresh_.front();
  }

  /// Precondition: not empty.
  job<T> pop() {
    if (!next_is_homed()) {
      ++run_;
      return take(floating_);
    }
    run_ = 0;
    if (!next_is_long()) {
      ++fresh_run_;
      return take(fresh_);
    }
    fresh_run_ = 0;
    return take(long_);
  }

  /// Removes the younger half of the floating jobs (rounded down), oldest first.
  std::vector<job<T>> take_half() {
    auto begin = floating_.end() - static_cast<ptrdiff_t>(floating_.size() / 2);
    std::vector<job<T>> taken(begin, floating_.end());
    floating_.erase(begin, floating_.end());
    return taken;
  }

 private:
  bool next_is_homed() const { return floating_.empty() || (homed() != 0 && run_ >= floating_in_a_row); }
  bool next_is_long() const { return fresh_.empty() || (!long_.empty() && fresh_run_ >= fresh_in_a_row); }

  static job<T> take(std::deque<job<T>>& from) {
    auto item = from.front();
    from.pop_front();
    return item;
  }

  std::deque<job<T>> floating_;
  std::deque<job<T>> fresh_; ///< homed jobs, as in `long_`
  std::deque<job<T>> long_;  ///< homed jobs that had a turn and have more to do
  uint32_t run_ = 0;         ///< floating jobs since the last homed one
  uint32_t fresh_run_ = 0;   ///< fresh jobs since the last long one
};

} // namespace terrace::runtime
