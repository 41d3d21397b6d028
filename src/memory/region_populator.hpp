// A thread that maps the existing pages of clients' regions before the first copies need them.
#pragma once

#include "base/large_pages.hpp"

#include <array>
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
#include <vector>

namespace terrace {

// Decides which part of a region is mapped ahead next.

/// A region is populated in passes of slices: a pass maps the pages that exist in it, and skips slices that are already
/// whole. Each pass starts where the last one ended.
///
/// The client decides how much of its region exists, and so how much a pass costs: a pass looks at no more than a
/// multiple of the bytes that exist, however large the region is. Pure, and used by one thread at a time.
class populate_steps {
 public:
  static constexpr uint64_t page_bytes = 4096;
  static constexpr uint64_t slice_bytes = 2 << 20; ///< mapping one takes about 0.1 ms
  /// Looking at a slice without pages takes a hundredth of the time in which a slice is mapped.
  static constexpr uint64_t looked_at_per_present = 8;
  static constexpr uint64_t looked_at_least = 64 << 20;

  explicit populate_steps(uint64_t region_bytes);

  struct slice {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  /// Begins a pass over a region in which `present_bytes` exist. Returns false if everything that could be
  /// found has been found.
  bool begin(uint64_t present_bytes);

  /// Returns the next slice of the pass; nullopt: the pass is over.
  std::optional<slice> next();

  /// Notes that `pages` pages of the slice exist and are mapped now.
  void add(const slice& range, uint64_t pages);

  /// all of the slice's pages are mapped
  bool is_whole(const slice& range) const { return is_whole(range.offset / slice_bytes); }
  bool whole() const { return whole_slices_ == mapped_.size(); } ///< nothing is left to populate
  uint64_t new_bytes() const { return new_bytes_; } ///< bytes that this pass mapped for the first time

 private:
  uint64_t bytes_of(size_t number) const;
  bool is_whole(size_t number) const;

  const uint64_t region_bytes_;
  std::vector<uint16_t> mapped_; // by slice: how many pages existed when the slice was looked at last
  uint64_t mapped_bytes_ = 0;    // sum of `mapped_`
  size_t whole_slices_ = 0;
  size_t at_ = 0;               // the slice that is looked at next
  size_t slices_left_ = 0;      // of this pass
  uint64_t looked_at_left_ = 0; // bytes left to look at in this pass
  uint64_t present_bytes_ = 0;  // when the pass began
  uint64_t new_bytes_ = 0;
};

/// Says after how many copies a region is worth another pass: after every copy while passes find new pages,
/// and ever more rarely while they do not.
class populate_rhythm {
 public:
  static constexpr int32_t never = INT32_MAX;
  static constexpr int32_t most = 1 << 16;

  /// A pass has mapped `new_bytes` for the first time. Returns the number of copies until the next pass.
  int32_t after(uint64_t new_bytes) {
    copies_ = new_bytes != 0 ? 1 : copies_ < most ? copies_ * 2 : most;
    return copies_;
  }

 private:
  int32_t copies_ = 1;
};

// A mark for each slice of a region.

/// One bit for each slice. The bits take memory, 64 KiB for a TiB in slices of 2 MiB, only from the first
/// mark on, so that registering a region does not wait for it. Safe on any thread.
class slice_marks {
 public:
  static constexpr uint64_t slices_max = 1 << 26; ///< 128 TiB in slices of 2 MiB

  explicit slice_marks(uint64_t slices) : slices_(slices) {}

  /// Marks the slice. Returns true if it had no mark yet, to only one of the threads that ask. Returns false
  /// for a slice that the region does not have, for every slice if there are more than `slices_max`, and if
  /// there is no memory for marks.
  bool add(uint64_t slice);
  bool has(uint64_t slice) const;

 private:
  static constexpr uint64_t word_bits = 64;
  using word = std::atomic<uint64_t>;

  const uint64_t slices_;
  std::once_flag once_;
  std::unique_ptr<word[]> made_;
  std::atomic<word*> words_{nullptr}; ///< null: there are no marks
};

// Decides whether asking the kernel for another large page is worth while.

/// Where memory is fragmented, the kernel may search for a large page for milliseconds and then refuse it; a
/// virtual machine may also have given the memory back to its host. So after each page that was refused, or
/// took longer than small pages do, a pause follows in which large pages are not asked for. Each failure
/// makes the next pause four times as long, and each page made in time halves it. During a load of a TiB in
/// which every attempt fails, only 140 pages are asked for. If one attempt in three is not worth while, the
/// pauses neither gain nor lose anything. Safe on any thread.
class large_page_supply {
 public:
  static constexpr uint32_t pause_max = 1 << 12; ///< in large pages: 8 GiB

  /// Returns false during a pause, and counts the page that is not asked for.
  bool may_ask();
  void answered(large_page_answer answer);

  std::array<uint64_t, large_page_answers> answers() const; ///< how many answers of each kind

 private:
  mutable std::mutex lock_; ///< protects the members below
  uint32_t pause_ = 1;      ///< length of the pause after the next failure
  uint32_t left_ = 0;       ///< rest of the pause
  std::array<uint64_t, large_page_answers> answers_{};
};

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
  static constexpr uint64_t slice_bytes = populate_steps::slice_bytes;

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
  std::unique_ptr<populate_steps> course_; ///< null: before the first pass
  bool passing_ = false;
  populate_rhythm rhythm_;
};

} // namespace terrace
