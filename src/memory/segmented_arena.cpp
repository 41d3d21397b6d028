#include "memory/segmented_arena.hpp"

#include <algorithm>

namespace terrace {

namespace {

/// Numbers reserved for growth. With segments of 1 GiB they allow 16 TiB of growth.
constexpr uint32_t segments_to_come = 16384;

} // namespace

segmented_arena::segmented_arena(const segmented_arena_options& options)
    : options_(options),
      segments_max_(static_cast<uint32_t>(options.bytes / options.segment_bytes) + 1 + segments_to_come),
      begins_(std::make_unique<std::atomic<std::byte*>[]>(segments_max_)) {}

result<std::unique_ptr<segmented_arena>> segmented_arena::create(const segmented_arena_options& options) {
  if (options.segment_bytes == 0 || options.segment_bytes > 1ULL << 30)
    return fail(errc::bad_request, "segment_bytes is " + std::to_string(options.segment_bytes) +
                                       "; expected 1 to 1073741824 (1 GiB)");
  if (options.bytes == 0)
    return fail(errc::bad_request, "an arena needs at least 4096 bytes, 0 were asked for");
  std::unique_ptr<segmented_arena> made(new segmented_arena(options));
  if (auto grown = made->grow(options.bytes); !grown)
    return tl::unexpected(grown.error());
  return made;
}

result<segmented_arena::growth> segmented_arena::grow(uint64_t bytes) {
  std::vector<slot> added;
  auto first = segments();
  uint64_t count = bytes / options_.segment_bytes + (bytes % options_.segment_bytes == 0 ? 0 : 1);
  if (count > segments_max_ - first)
    return fail(errc::no_space, std::to_string(count) + " more segments: the arena has numbered " +
                                    std::to_string(first) + " since the daemon started, and can number " +
                                    std::to_string(segments_max_) + "; restart it");
  for (uint64_t at = 0; at < bytes; at += options_.segment_bytes) {
    uint64_t size = std::min(options_.segment_bytes, bytes - at);
    auto segment = arena::create({.name = options_.name + "-" + std::to_string(first + added.size()),
                                  .bytes = size,
                                  .huge_pages = options_.huge_pages,
                                  .numa_node = options_.numa_node});
    if (!segment)
      return tl::unexpected(segment.error());
    std::shared_ptr<arena> memory(new arena(std::move(*segment)), deleted_by{options_.teardown});
    std::shared_ptr<arena> lent(memory.get(), [memory](arena*) {});
    added.push_back({std::move(memory), std::move(lent), {}, size});
  }
  growth made{0, first, first + static_cast<uint32_t>(added.size())};
  std::lock_guard held(lock_);
  if (!slots_.empty())
    made.gap_bytes = options_.segment_bytes - slots_.back().bytes;
  for (slot& one : added) {
    begins_[slots_.size()].store(one.memory->data(), std::memory_order_release);
    slots_.push_back(std::move(one));
  }
  size_ += bytes;
  return made;
}

void segmented_arena::undo(const growth& last) {
  std::lock_guard held(lock_);
  for (uint32_t i = last.first; i < last.end; ++i) {
    size_ -= slots_[i].bytes;
    begins_[i].store(nullptr, std::memory_order_release);
  }
  slots_.resize(last.first);
  prefaulting_ = std::min(prefaulting_, last.first);
}

uint32_t segmented_arena::segments() const {
  std::lock_guard held(lock_);
  return static_cast<uint32_t>(slots_.size());
}

std::shared_ptr<const arena> segmented_arena::segment(uint32_t number) const {
  std::lock_guard held(lock_);
  return number < slots_.size() ? slots_[number].memory : nullptr;
}

std::shared_ptr<const arena> segmented_arena::lend(uint32_t number) const {
  std::lock_guard held(lock_);
  return number < slots_.size() ? slots_[number].lent : nullptr;
}

segmented_arena::range segmented_arena::range_of(uint32_t number) const {
  std::lock_guard held(lock_);
  return {number * options_.segment_bytes, slots_[number].bytes};
}

std::vector<uint32_t> segmented_arena::choose(uint64_t bytes) const {
  std::vector<uint32_t> chosen;
  uint64_t found = 0;
  std::lock_guard held(lock_);
  for (bool mapped : {false, true})
    for (size_t i = slots_.size(); i-- > 0 && found < bytes;) {
      const slot& one = slots_[i];
      if (one.retired || (one.lent.use_count() > 1) != mapped)
        continue;
      chosen.push_back(static_cast<uint32_t>(i));
      found += one.bytes;
    }
  return chosen;
}

void segmented_arena::retire(uint32_t number) {
  std::lock_guard held(lock_);
  slots_[number].retired = true;
  size_ -= slots_[number].bytes;
}

void segmented_arena::drop(uint32_t number) {
  std::shared_ptr<arena> last, lent; // unmapped after the lock is released
  std::lock_guard held(lock_);
  last = std::move(slots_[number].memory);
  lent = std::move(slots_[number].lent);
  slots_[number].gone = last;
  begins_[number].store(nullptr, std::memory_order_release);
}

uint64_t segmented_arena::leaving_bytes() const {
  uint64_t bytes = 0;
  std::lock_guard held(lock_);
  for (const slot& one : slots_)
    bytes += one.retired && (one.memory || !one.gone.expired()) ? one.bytes : 0;
  return bytes;
}

result<bool> segmented_arena::prefault(uint64_t bytes) {
  while (prefaulting_ < segments()) {
    std::shared_ptr<arena> next;
    {
      std::lock_guard held(lock_);
      next = slots_[prefaulting_].memory;
    }
    if (next) {
      auto done = next->prefault(bytes);
      if (!done || !*done)
        return done;
    }
    if (++prefaulting_ < segments() && next)
      return false;
  }
  return true;
}

uint64_t segmented_arena::huge_page_bytes() const {
  uint64_t bytes = 0;
  std::lock_guard held(lock_);
  for (const slot& one : slots_)
    bytes += one.memory && !one.retired && one.memory->huge_pages() ? one.bytes : 0;
  return bytes;
}

std::string segmented_arena::huge_pages_refusal() const {
  size_t ordinary = 0;
  std::string why;
  std::lock_guard held(lock_);
  for (const slot& one : slots_) {
    if (!one.memory || one.retired || one.memory->huge_pages_refusal().empty())
      continue;
    ++ordinary;
    why = one.memory->huge_pages_refusal();
  }
  return ordinary == 0 ? "" : std::to_string(ordinary) + " segments have ordinary pages: " + why;
}

} // namespace terrace
