// A worker's queue of jobs: homed and floating ones separately, each first in, first out, and a place for the one that
// runs next.
//
// Go's `runnext` and Tokio's LIFO slot are such places. In both the job in it inherits the turn of the one that woke it;
// Tokio uses it three times in a row at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace terrace::runtime {

enum class job_kind : uint8_t {
  floating, ///< may run on any worker
  homed,    ///< runs on this worker only: an actor with a home, or a shutdown job
};

template <class T>
struct job {
  T* value = nullptr;
  job_kind kind = job_kind::floating;
  int64_t since_ns = 0; ///< when it was queued, at the precision of the loop's clock
  bool again = false;   ///< the job had a turn and has more to do
};

/// Floating jobs go first: connections, which are homed, started them and wait for them, and others may wait
/// for the same tier. After `floating_in_a_row` of them a homed job gets a turn, and also when a floating job
/// did not finish in its own turn. So neither kind starves, and a client answered by a busy actor does not
/// wait for all its other clients.
///
/// A job may be queued to run next (`push_next`), if the running one woke it: one for which a client waits finds the data in
/// the cache, and is answered before others begin. It inherits the turn, so it keeps no other job from its own. After
/// `next_in_a_row` of them the next one goes to the end of the line, so two that wake each other starve nobody. Jobs
/// that serve many (tiers, disks, policies) are not queued so: what is sent to them collects, and they do it in one turn.
///
/// Among homed jobs, those that did not finish in their last turn (long lookups) go after those just woken: a
/// short request does not wait for all long ones. After `fresh_in_a_row` fresh jobs one long job gets a turn.
/// Used by one thread.
template <class T>
class job_queue {
 public:
  static constexpr uint32_t floating_in_a_row = 4;
  static constexpr uint32_t fresh_in_a_row = 8;
  static constexpr uint32_t next_in_a_row = 3;

  bool empty() const { return size() == 0; }
  size_t size() const { return floating() + fresh_.size() + long_.size() + (next_.value != nullptr ? 1 : 0); }
  size_t floating() const { return floating_.size(); } ///< without one that runs next
  size_t homed() const {
    return fresh_.size() + long_.size() + (next_.value != nullptr && next_.kind == job_kind::homed ? 1 : 0);
  }

  void push(job<T> item) {
    (item.kind == job_kind::floating ? floating_ : item.again ? long_ : fresh_).push_back(item);
  }

  /// Queues a job that the running one has woken.
  void push_next(job<T> item) {
    if (next_.value != nullptr)
      push(next_);
    next_ = item;
  }

  /// Queues a job that has had its turn and has more to do.
  void push_again(job<T> item) {
    if (item.kind == job_kind::floating)
      run_ = floating_in_a_row;
    item.again = true;
    push(item);
  }

  /// Ends the running job's turn, before `pop`: returns the job that inherits it, or none.
  job<T> take_next() {
    auto item = std::exchange(next_, {});
    if (item.value == nullptr || next_run_ == next_in_a_row) {
      next_run_ = 0;
      if (item.value != nullptr)
        push(item);
      return {};
    }
    ++next_run_;
    return item;
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

  job<T> next_; ///< the one that runs next; none: `what` is null
  std::deque<job<T>> floating_;
  std::deque<job<T>> fresh_; ///< homed jobs, as in `long_`
  std::deque<job<T>> long_;  ///< homed jobs that had a turn and have more to do
  uint32_t next_run_ = 0;    ///< jobs that ran next, one after the other
  uint32_t run_ = 0;         ///< floating jobs since the last homed one
  uint32_t fresh_run_ = 0;   ///< fresh jobs since the last long one
};

} // namespace terrace::runtime
