// A thread that maps what exists of clients' regions ahead of the first copies.
#pragma once

#include "base/large_pages.hpp"
#include "memory/large_page_supply.hpp"
#include "memory/populate_course.hpp"
#include "memory/slice_marks.hpp"

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
  using large_page_maker = large_page_answer (*)(std::byte* unit);

  /// `first`: called on the thread as it begins. `make`: for loads.
  explicit region_populator(std::function<void()> first = {}, large_page_maker make = make_large_page);
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
  const large_page_supply& large_pages() const { return large_pages_; } ///< for loads
  uint64_t waiting() const {
    return waiting_.load(std::memory_order_relaxed);
  } ///< regions, with the one in progress

 private:
  friend class region_ahead;
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
  const large_page_maker make_;
  large_page_supply large_pages_; ///< of the machine: for all regions
  std::thread thread_;
};

/// Maps those of the pages that exist and are in memory. Returns their number. `data`: at a page of a mapping of shared
/// memory that may be read.
uint64_t populate_present(std::byte* data, uint64_t bytes);

/// What is kept of a region for its passes, and for the first loads into it.
class region_ahead {
 public:
  static constexpr uint64_t slice_bytes = populate_course::slice_bytes;

  region_ahead(std::weak_ptr<region_populator> by, uint64_t region_bytes)
      : by_(std::move(by)), reached_(region_bytes / slice_bytes) {}

  /// A copy begins: true if the region is due for another pass, for one of all threads that ask.
  bool copy_begins() {
    return left_.load(std::memory_order_relaxed) > 0 && left_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }
  std::shared_ptr<region_populator> populator() const { return by_.lock(); }

  /// Begins a pass, or maps a slice of it, and returns how many bytes it mapped for the first time; nullopt: the pass is
  /// over. On one thread at a time.
  std::optional<uint64_t> go_on(int fd, std::byte* data, uint64_t bytes);

  /// No copy of all of it has reached the slice that begins there, and no pass has mapped it. `offset`: a multiple of `slice_bytes`.
  bool is_new(uint64_t offset) const { return !reached_.has(offset / slice_bytes); }

  /// A load is about to write all bytes of that slice. If it is new: makes it as a large page if nothing of it is in memory,
  /// and otherwise maps what is. Makes no page that the load would not make. Returns what that cost, in bytes that are copied
  /// in the same time. `data`: of the region. On any thread.
  uint64_t before_load(std::byte* data, uint64_t offset);
  /// A store is about to read all bytes of that slice: its faults map 16 pages each, and no pass need do it again.
  void before_store(uint64_t offset) { reached_.add(offset / slice_bytes); }

 private:
  uint64_t make_large(region_populator& by, std::byte* unit);

  const std::weak_ptr<region_populator> by_;
  slice_marks reached_; ///< by a copy of the whole slice, or mapped by a pass
  std::atomic<bool> no_large_pages_{false};
  std::atomic<int32_t> left_{
      0}; ///< copies until the next pass; 0 or less: it waits, is in progress, or never comes
  std::unique_ptr<populate_course> course_; ///< null: before the first pass
  bool passing_ = false;
  populate_rhythm rhythm_;
};

} // namespace terrace
