// A thread that maps what exists of clients' regions ahead of the first copies.
#pragma once

#include "memory/populate_course.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace terrace {

class client_region;

/// The first access to each 64 KiB of a new mapping is a page fault, and the first write to each 4 KiB: of a first copy
/// they take half of the time. This thread maps the pages before, in slices between which other regions get theirs.
///
/// It maps pages that exist and are in memory, and no others: it makes none, and reads none back from swap. So a sparse
/// region costs its daemon no memory, however large. Which pages exist is up to the client at any time: one that removes
/// pages while they are mapped may get them back, empty, a slice at a time (decision 075).
///
/// A region is referred to weakly, and held during a slice. All calls are safe on any thread.
class region_populator {
 public:
  /// `first`: called on the thread as it begins.
  explicit region_populator(std::function<void()> first = {});
  ~region_populator() { finish(); }
  region_populator(const region_populator&) = delete;
  region_populator& operator=(const region_populator&) = delete;

  /// A pass over the region, after those that wait. It must not be waiting already.
  void add(std::weak_ptr<const client_region> region) noexcept;

  /// Runs `work` when the slice in progress is over, and its region is no longer held for it. At once, on the calling thread, if
  /// none is in progress.
  void after_slice(std::function<void()> work) noexcept;

  /// Drops the regions that wait and ends the thread, after a slice at most.
  void finish();

  uint64_t populated_bytes() const { return populated_bytes_.load(std::memory_order_relaxed); }
  uint64_t waiting() const {
    return waiting_.load(std::memory_order_relaxed);
  } ///< regions, with the one in progress

 private:
  void work_off();
  bool work(const std::weak_ptr<const client_region>& region);

  std::mutex lock_; ///< protects the following
  std::deque<std::weak_ptr<const client_region>> line_;
  std::deque<std::function<void()>> after_; ///< the slice in progress
  bool in_slice_ = false;
  bool ending_ = false;
  std::condition_variable more_;
  std::atomic<uint64_t> populated_bytes_{0};
  std::atomic<uint64_t> waiting_{0};
  std::thread thread_;
};

/// Maps those of the pages that exist and are in memory. Returns their number. `data`: at a page of a mapping of shared
/// memory that may be read.
uint64_t populate_present(std::byte* data, uint64_t bytes);

/// What is kept of a region for its passes.
class region_ahead {
 public:
  explicit region_ahead(std::weak_ptr<region_populator> by) : by_(std::move(by)) {}

  /// A copy begins: true if the region is due for another pass, for one of all threads that ask.
  bool copy_begins() {
    return left_.load(std::memory_order_relaxed) > 0 && left_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }
  std::shared_ptr<region_populator> populator() const { return by_.lock(); }

  /// Begins a pass, or maps a slice of it, and returns how many bytes it mapped for the first time; nullopt: the pass is
  /// over. On one thread at a time.
  std::optional<uint64_t> go_on(int fd, std::byte* data, uint64_t bytes);

 private:
  const std::weak_ptr<region_populator> by_;
  std::atomic<int32_t> left_{
      0}; ///< copies until the next pass; 0 or less: it waits, is in progress, or never comes
  std::unique_ptr<populate_course> course_; ///< null: before the first pass
  bool passing_ = false;
  populate_rhythm rhythm_;
};

} // namespace terrace
