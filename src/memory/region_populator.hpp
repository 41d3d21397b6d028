// A thread that maps the existing pages of clients' regions before the first copies need them.
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

/// The first access to each 64 KiB of a new mapping is a page fault, and so is the first write to each 4 KiB: they take
/// half the time of a first copy. This thread maps the pages beforehand, in slices, and other regions have their turn
/// between two slices.
///
/// It maps only pages that exist and are in memory: it creates none, and reads none back from swap. So a sparse region
/// costs the daemon no memory, however large it is. The client can change at any time which pages exist: if it removes
/// pages while they are mapped, it may get them back empty, a slice at a time (decision 075).
///
/// The thread refers to a region weakly, and holds it during a slice. Safe on any thread.
class region_populator {
 public:
  using large_page_maker = large_page_answer (*)(std::byte* unit);

  /// `first` is called on the thread when it begins. `make` makes large pages for loads.
  explicit region_populator(std::function<void()> first = {}, large_page_maker make = make_large_page);
  ~region_populator() { finish(); }
  region_populator(const region_populator&) = delete;
  region_populator& operator=(const region_populator&) = delete;

  /// Queues a pass over the region, behind the passes that wait. The region must not be waiting already.
  void add(std::weak_ptr<const client_region> region) noexcept;

  /// Runs `work` when the slice in progress is over and its region is no longer held. If none is in progress,
  /// runs it at once on the calling thread.
  void after_slice(std::function<void()> work) noexcept;

  /// Drops the regions that wait and ends the thread, after one slice at most.
  void finish();

  uint64_t populated_bytes() const { return populated_bytes_.load(std::memory_order_relaxed); }
  const large_page_supply& large_pages() const { return large_pages_; } ///< used by loads
  uint64_t waiting() const {
    return waiting_.load(std::memory_order_relaxed);
  } ///< the number of queued regions

 private:
  friend class region_ahead;
  void work_off();
  bool work(const std::weak_ptr<const client_region>& region);

  std::mutex lock_; ///< protects the members below
  std::deque<std::weak_ptr<const client_region>> line_;
  std::deque<std::function<void()>> after_; ///< work to run after the slice in progress
  bool in_slice_ = false;
  bool ending_ = false;
  std::condition_variable more_;
  std::atomic<uint64_t> populated_bytes_{0};
  std::atomic<uint64_t> waiting_{0};
  const large_page_maker make_;
  large_page_supply large_pages_; ///< shared by all regions, because it describes the machine
  std::thread thread_;
};

/// Maps the pages that exist and are in memory, and returns their number. `data` begins a page in a mapping
/// of shared memory that may be read.
uint64_t populate_present(std::byte* data, uint64_t bytes);

/// The state of a region's passes, and of the first loads into it.
class region_ahead {
 public:
  static constexpr uint64_t slice_bytes = populate_course::slice_bytes;

  region_ahead(std::weak_ptr<region_populator> by, uint64_t region_bytes)
      : by_(std::move(by)), reached_(region_bytes / slice_bytes) {}

  /// A copy begins. Returns true to one of the calling threads if the region is due for another pass.
  bool copy_begins() {
    return left_.load(std::memory_order_relaxed) > 0 && left_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }
  std::shared_ptr<region_populator> populator() const { return by_.lock(); }

  /// Begins a pass, or maps a slice of it, and returns how many bytes it mapped for the first time; nullopt:
  /// the pass is over. Call it on one thread at a time.
  std::optional<uint64_t> go_on(int fd, std::byte* data, uint64_t bytes);

  /// True if no copy has covered the whole slice that begins at `offset`, and no pass has mapped it.
  /// `offset`: a multiple of `slice_bytes`.
  bool is_new(uint64_t offset) const { return !reached_.has(offset / slice_bytes); }

  /// Call before a load writes all bytes of the slice. If the slice is new and nothing of it is in memory, makes it as
  /// a large page; if part of it is in memory, maps that part. Makes no page that the load would not make. Returns the
  /// cost, in bytes that could be copied in the same time. `data` is that of the region. Safe on any thread.
  uint64_t before_load(std::byte* data, uint64_t offset);
  /// Call before a store reads all bytes of the slice: the store's faults map 16 pages each, so no pass needs
  /// to map them.
  void before_store(uint64_t offset) { reached_.add(offset / slice_bytes); }

 private:
  uint64_t make_large(region_populator& by, std::byte* unit);

  const std::weak_ptr<region_populator> by_;
  slice_marks reached_; ///< slices that a copy has covered completely, or that a pass has mapped
  std::atomic<bool> no_large_pages_{false};
  std::atomic<int32_t> left_{
      0}; ///< copies until the next pass; 0 or less: a pass waits or is in progress, or none will come
  std::unique_ptr<populate_course> course_; ///< null: before the first pass
  bool passing_ = false;
  populate_rhythm rhythm_;
};

} // namespace terrace
