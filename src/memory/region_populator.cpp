#include "memory/region_populator.hpp"

#include "memory/client_mapping.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace terrace {

namespace {

constexpr uint64_t page_of_memory = populate_steps::page_bytes;

/// Mapping small pages that exist takes as long as copying this many times their bytes; making a large page
/// takes as long as copying its bytes once.
constexpr uint64_t mapping_cost = 2;
static_assert(region_ahead::slice_bytes == large_page_bytes);

/// Only a process that may write to the file learns from the kernel which pages exist; to others the kernel
/// says that all do.
bool kernel_tells_pages(int fd) {
  return ::faccessat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), W_OK, AT_EACCESS) == 0;
}

uint64_t bytes_that_exist(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

} // namespace

uint64_t populate_present(std::byte* data, uint64_t bytes) {
  std::array<unsigned char, populate_steps::slice_bytes / page_of_memory> in_memory;
  uint64_t mapped = 0;
  for (uint64_t done = 0; done < bytes; done += populate_steps::slice_bytes) {
    std::byte* begin = data + done;
    uint64_t some = std::min(bytes - done, populate_steps::slice_bytes);
    if (::mincore(begin, some, in_memory.data()) != 0)
      return mapped;
    uint64_t pages = (some + page_of_memory - 1) / page_of_memory;
    for (uint64_t page = 0; page < pages;) {
      uint64_t end = page;
      while (end < pages && (in_memory[end] & 1) != 0)
        ++end;
      // The pages are populated for reading even if they will be written: in a shared mapping they are then mapped for
      // both, 16 with each fault. Kernels before 5.14 do not know the call, and nothing is mapped ahead.
      if (end > page) {
        if (::madvise(begin + page * page_of_memory, (end - page) * page_of_memory, MADV_POPULATE_READ) != 0)
          return mapped;
        mapped += end - page;
      }
      page = std::max(end, page + 1);
    }
  }
  return mapped;
}

region_populator::region_populator(std::function<void()> first, large_page_maker make)
    : make_(make), thread_([this, first = std::move(first)] {
        if (first)
          first();
        work_off();
      }) {
  ::pthread_setname_np(thread_.native_handle(), "populate");
}

void region_populator::finish() {
  {
    std::lock_guard held(lock_);
    ending_ = true;
    line_.clear();
  }
  more_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

void region_populator::add(std::weak_ptr<const client_region> region) noexcept {
  try {
    std::lock_guard held(lock_);
    if (ending_)
      return;
    line_.push_back(std::move(region));
    waiting_.store(line_.size(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    return; // the first access maps its pages
  }
  more_.notify_one();
}

void region_populator::after_slice(std::function<void()> work) noexcept {
  try {
    std::lock_guard held(lock_);
    if (in_slice_) {
      after_.push_back(std::move(work));
      return;
    }
  } catch (const std::bad_alloc&) { // without memory, `work` runs rather too early than never
  }
  work();
}

void region_populator::work_off() {
  std::unique_lock held(lock_);
  for (;;) {
    more_.wait(held, [this] { return ending_ || !line_.empty(); });
    if (ending_)
      return;
    auto region = std::move(line_.front());
    line_.pop_front();
    in_slice_ = true;
    held.unlock();
    bool more = work(region);
    held.lock();
    in_slice_ = false;
    while (!after_.empty()) {
      auto next = std::move(after_.front());
      after_.pop_front();
      held.unlock();
      next();
      next = nullptr;
      held.lock();
    }
    if (more && !ending_)
      line_.push_back(std::move(region));
    waiting_.store(line_.size(), std::memory_order_relaxed);
  }
}

/// Populates one slice. Returns false if the pass is over, or the region has ended.
bool region_populator::work(const std::weak_ptr<const client_region>& region) {
  auto held = region.lock();
  if (!held)
    return false;
  auto mapped = held->ahead()->go_on(held->fd(), held->data(), held->size());
  populated_bytes_.fetch_add(mapped.value_or(0), std::memory_order_relaxed);
  return mapped.has_value();
}

std::optional<uint64_t> region_ahead::go_on(int fd, std::byte* data, uint64_t bytes) {
  assert(left_.load(std::memory_order_relaxed) <= 0); // no copy may queue it a second time
  if (!course_) {
    if (!kernel_tells_pages(fd))
      return std::nullopt;
    course_ = std::make_unique<populate_steps>(bytes);
  }
  if (!passing_)
    passing_ = course_->begin(bytes_that_exist(fd));
  if (auto slice = passing_ ? course_->next() : std::nullopt) {
    if (!is_new(slice->offset)) { // a copy maps what it copies
      course_->add(*slice, slice_bytes / page_of_memory);
      return 0;
    }
    uint64_t before = course_->new_bytes();
    course_->add(*slice, populate_present(data + slice->offset, slice->bytes));
    if (course_->is_whole(*slice))
      reached_.add(slice->offset / slice_bytes);
    return course_->new_bytes() - before;
  }
  passing_ = false;
  if (!course_->whole())
    left_.store(rhythm_.after(course_->new_bytes()), std::memory_order_relaxed);
  return std::nullopt;
}

uint64_t region_ahead::before_load(std::byte* data, uint64_t offset) {
  if (!reached_.add(offset / slice_bytes))
    return 0;
  auto by = by_.lock();
  if (!by)
    return 0;
  // Bytes that are swapped out, or allocated but never written, are not in memory: making a large page then keeps these
  // bytes and takes longer. Where the kernel does not tell which pages exist, all seem to, and small pages are made.
  const uint64_t mapped = populate_present(data + offset, slice_bytes) * page_of_memory;
  if (mapped == 0)
    return make_large(*by, data + offset);
  return mapped * mapping_cost;
}

uint64_t region_ahead::make_large(region_populator& by, std::byte* unit) {
  if (reinterpret_cast<uintptr_t>(unit) % large_page_bytes != 0 ||
      no_large_pages_.load(std::memory_order_relaxed) || !by.large_pages_.may_ask())
    return 0;
  const large_page_answer answer = by.make_(unit);
  by.large_pages_.answered(answer);
  if (answer == large_page_answer::impossible)
    no_large_pages_.store(true, std::memory_order_relaxed);
  return large_page_bytes;
}

bool large_page_supply::may_ask() {
  std::lock_guard held(lock_);
  if (left_ == 0)
    return true;
  --left_;
  return false;
}

void large_page_supply::answered(large_page_answer answer) {
  std::lock_guard held(lock_);
  ++answers_[static_cast<size_t>(answer)];
  switch (answer) {
    case large_page_answer::made: pause_ = std::max(pause_ / 2, 1U); return;
    case large_page_answer::slow:
    case large_page_answer::refused:
      left_ = pause_;
      pause_ = std::min(pause_ * 4, pause_max);
      return;
    case large_page_answer::impossible: return; // it concerns one mapping and says nothing about others
  }
}

std::array<uint64_t, large_page_answers> large_page_supply::answers() const {
  std::lock_guard held(lock_);
  return answers_;
}

namespace {
constexpr uint64_t bit_of(uint64_t slice, uint64_t word_bits) { return uint64_t{1} << slice % word_bits; }
} // namespace

bool slice_marks::add(uint64_t slice) {
  if (slice >= slices_)
    return false;
  std::call_once(once_, [this] {
    if (slices_ <= slices_max)
      made_.reset(new (std::nothrow) word[(slices_ - 1) / word_bits + 1]());
    words_.store(made_.get(), std::memory_order_release);
  });
  word* words = words_.load(std::memory_order_acquire);
  const uint64_t bit = bit_of(slice, word_bits);
  return words != nullptr && (words[slice / word_bits].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

bool slice_marks::has(uint64_t slice) const {
  const word* words = words_.load(std::memory_order_acquire);
  return words != nullptr && slice < slices_ &&
         (words[slice / word_bits].load(std::memory_order_relaxed) & bit_of(slice, word_bits)) != 0;
}

populate_steps::populate_steps(uint64_t region_bytes)
    : region_bytes_(region_bytes), mapped_((region_bytes + slice_bytes - 1) / slice_bytes) {}

uint64_t populate_steps::bytes_of(size_t number) const {
  return std::min(slice_bytes, region_bytes_ - number * slice_bytes);
}

bool populate_steps::is_whole(size_t number) const {
  return mapped_[number] * page_bytes >= bytes_of(number); // the last page may end beyond the region
}

bool populate_steps::begin(uint64_t present_bytes) {
  new_bytes_ = 0;
  slices_left_ = 0;
  present_bytes_ = present_bytes;
  if (whole() || present_bytes <= mapped_bytes_)
    return false;
  slices_left_ = mapped_.size();
  looked_at_left_ = std::max(looked_at_least, std::min(present_bytes, region_bytes_) * looked_at_per_present);
  return true;
}

std::optional<populate_steps::slice> populate_steps::next() {
  for (; slices_left_ != 0; --slices_left_) {
    size_t now = at_;
    uint64_t bytes = bytes_of(now);
    bool skipped = is_whole(now);
    if (!skipped && (mapped_bytes_ >= present_bytes_ || looked_at_left_ < bytes))
      break;
    at_ = at_ + 1 == mapped_.size() ? 0 : at_ + 1;
    if (skipped)
      continue;
    looked_at_left_ -= bytes;
    --slices_left_;
    return slice{now * slice_bytes, bytes};
  }
  slices_left_ = 0;
  return std::nullopt;
}

void populate_steps::add(const slice& range, uint64_t pages) {
  assert(range.offset % slice_bytes == 0 && pages <= slice_bytes / page_bytes);
  size_t number = range.offset / slice_bytes;
  bool before = is_whole(number);
  new_bytes_ += pages > mapped_[number] ? (pages - mapped_[number]) * page_bytes : 0;
  mapped_bytes_ += pages * page_bytes;
  mapped_bytes_ -= mapped_[number] * page_bytes;
  mapped_[number] = static_cast<uint16_t>(pages);
  whole_slices_ += is_whole(number) ? 1 : 0;
  whole_slices_ -= before ? 1 : 0;
}

} // namespace terrace
