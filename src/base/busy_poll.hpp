// Decides whether a thread that has nothing to do polls for a while before it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sys/resource.h>

namespace terrace {

/// Waking up on another processor takes several times as long as serving a small request, so a thread that
/// waits for a request or an answer may poll for some microseconds first. Polling pays while requests follow
/// each other closely and processors are idle. Where processors are short it does harm: the polling thread
/// holds the processor that the other side needs. So polling stops for a while when the kernel takes the
/// processor away from the thread, and becomes rare where it does not pay.
///
///   if (polling.begins(now()))
///     while (!something_came() && polling.goes_on(now())) {}
///   polling.ends(something_came);
///   if (polling.suspects() && preempted_since_last_time()) polling.was_preempted(now());
///
/// Pure: times are arguments, in nanoseconds of any steady clock. Used by one thread at a time.
class busy_poll {
 public:
  static constexpr int64_t most_ns = 1'000'000;
  /// A longer gap between two looks means that something else ran on this processor, if only an interrupt.
  static constexpr int64_t gap_ns = 3'000;
  static constexpr int64_t rest_least_ns = 1'000'000;
  static constexpr int64_t rest_most_ns = 128'000'000;
  static constexpr uint32_t misses_in_a_row = 4; ///< after this many, only some waits begin with polling
  static constexpr uint32_t skipped_most = 64;

  /// `poll_ns`: how long a wait polls; 0: never.
  explicit busy_poll(int64_t poll_ns = 0) : poll_ns_(std::min(poll_ns, most_ns)) {}

  bool enabled() const { return poll_ns_ > 0; }

  /// The thread has nothing to do. Returns true if it should poll, as long as `goes_on` returns true.
  bool begins(int64_t now_ns) {
    if (!enabled() || now_ns < rests_until_ns_)
      return false;
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    began_ns_ = looked_ns_ = now_ns;
    suspects_ = false;
    return true;
  }

  /// Call after each look that found nothing.
  bool goes_on(int64_t now_ns) {
    suspects_ = suspects_ || now_ns - looked_ns_ > gap_ns;
    looked_ns_ = now_ns;
    return now_ns - began_ns_ < poll_ns_;
  }

  /// Call when polling has ended. `paid`: it found something.
  void ends(bool paid) {
    if (paid) {
      misses_ = 0;
      skipped_ = 1;
      if (!suspects_)
        rest_ns_ = std::max(rest_ns_ / 2, rest_least_ns);
    } else if (++misses_ >= misses_in_a_row) {
      skip_ = skipped_;
      skipped_ = std::min(skipped_ * 2, skipped_most);
    }
  }

  /// True if something else may have run during the polling: ask the kernel whether this thread was preempted.
  bool suspects() const { return suspects_; }

  /// The kernel says that the thread was preempted: processors are short.
  void was_preempted(int64_t now_ns) {
    rests_until_ns_ = now_ns + rest_ns_;
    rest_ns_ = std::min(rest_ns_ * 4, rest_most_ns);
  }

 private:
  int64_t poll_ns_;
  int64_t began_ns_ = 0;
  int64_t looked_ns_ = 0;
  int64_t rests_until_ns_ = 0;
  int64_t rest_ns_ = rest_least_ns;
  uint32_t misses_ = 0;
  uint32_t skip_ = 0;    // waits that begin without polling
  uint32_t skipped_ = 1; // the next time that polling does not pay
  bool suspects_ = false;
};

/// Counts how often the kernel has taken the processor away from the calling thread while it could have gone
/// on. Each call is a system call.
class preemption_count {
 public:
  /// Returns true if the count has grown since the last call.
  bool grew();

 private:
  int64_t last_ = 0;
};

inline bool preemption_count::grew() {
  rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) != 0)
    return false;
  bool more = used.ru_nivcsw > last_;
  last_ = used.ru_nivcsw;
  return more;
}

} // namespace terrace
