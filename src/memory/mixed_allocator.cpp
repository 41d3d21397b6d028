#include "memory/mixed_allocator.hpp"

#include "memory/allocator_registry.hpp"
#include "memory/buffer_allocator.hpp"
#include "memory/size_class_allocator.hpp"

#include <algorithm>

namespace terrace {

namespace {

template <class T>
std::vector<T> pick(std::span<const T> from, std::span<const size_t> which) {
  std::vector<T> picked;
  for (size_t i : which)
    picked.push_back(from[i]);
  return picked;
}

/// Divides the indices into those for which `is` holds and the others.
template <class F>
std::pair<std::vector<size_t>, std::vector<size_t>> divide(size_t count, F&& is) {
  std::pair<std::vector<size_t>, std::vector<size_t>> parts;
  for (size_t i = 0; i < count; ++i)
    (is(i) ? parts.first : parts.second).push_back(i);
  return parts;
}

} // namespace

result<std::unique_ptr<allocator>> mixed_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  if (options.reserved_bytes != 0)
    return fail(errc::bad_request, "reserved_bytes is " + std::to_string(options.reserved_bytes) +
                                       ": expected 0, a mixed arena has all of its bytes to itself");
  uint64_t pages = options.capacity_bytes / options.alignment_bytes;
  if (options.small_percent < 1 || options.small_percent > 99 || pages < 2)
    return fail(errc::bad_request,
                "small_percent is " + std::to_string(options.small_percent) + " of " +
                    std::to_string(options.capacity_bytes) +
                    " bytes: a mixed arena expects 1 to 99 and at least two times its alignment");
  uint64_t small_pages = std::max<uint64_t>(1, pages * options.small_percent / 100);
  return std::unique_ptr<allocator>(new mixed_allocator(options, small_pages * options.alignment_bytes));
}

mixed_allocator::mixed_allocator(const allocator_options& options, uint64_t small_end)
    : options_(options), small_end_(small_end) {
  allocator_options of_small = options, of_large = options;
  of_small.capacity_bytes = small_end;
  of_large.reserved_bytes = small_end;
  small_ = *buffer_allocator::make(of_small); // valid because the whole is valid
  large_ = *size_class_allocator::make(of_large);
}

uint64_t mixed_allocator::small_limit() const {
  uint64_t limit = options_.small_max_bytes / options_.alignment_bytes * options_.alignment_bytes;
  return std::min(limit, small_->largest_possible());
}

uint64_t mixed_allocator::largest_possible() const {
  return std::max(large_->largest_possible(), small_limit());
}

bool mixed_allocator::place(allocator& area, std::span<const uint64_t> sizes, std::span<const size_t> which,
                            std::vector<extent>& taken) {
  if (which.empty())
    return true;
  auto placed = area.allocate(pick(sizes, which));
  if (!placed)
    return false;
  for (size_t i = 0; i < which.size(); ++i)
    taken[which[i]] = (*placed)[i];
  return true;
}

result<std::vector<extent>> mixed_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  if (*total > usage().free_bytes)
    return fail_no_space(*this, sizes.size(), *total);
  if (sizes.size() == 1) {
    auto one = is_small(sizes[0]) ? small_->allocate(sizes) : large_->allocate(sizes);
    if (!one && is_small(sizes[0]))
      one = large_->allocate(sizes);
    count_alike();
    return one ? std::move(one) : fail_no_space(*this, 1, *total);
  }
  std::vector<extent> taken(sizes.size());
  auto [small, large] = divide(sizes.size(), [&](size_t i) { return is_small(sizes[i]); });
  auto attempt = [&](std::span<const size_t> in_small, std::span<const size_t> in_large) {
    if (!place(*small_, sizes, in_small, taken))
      return false;
    if (place(*large_, sizes, in_large, taken))
      return true;
    small_->free(pick<extent>(taken, in_small));
    return false;
  };
  bool fits = attempt(small, large);
  if (!fits && !small.empty()) {
    auto [none, all] = divide(sizes.size(), [](size_t) { return false; });
    fits = attempt(none, all);
    // Places as many small objects as their area holds; the rest go with the large ones.
    for (size_t kept = small.size(); !fits && kept > 1; kept /= 2) {
      std::vector<size_t> first(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(kept / 2));
      std::vector<size_t> rest(small.begin() + static_cast<std::ptrdiff_t>(kept / 2), small.end());
      rest.insert(rest.end(), large.begin(), large.end());
      fits = attempt(first, rest);
    }
  }
  count_alike();
  if (!fits)
    return fail_no_space(*this, sizes.size(), *total);
  return taken;
}

result<void> mixed_allocator::adopt(std::span<const extent> extents, std::span<const uint64_t> requested) {
  auto [small, large] = divide(extents.size(), [&](size_t i) { return in_small_area(extents[i]); });
  for (size_t i : small)
    if (!is_small(requested[i]))
      return fail_place(extents[i], requested[i]);
  auto taken = small_->adopt(pick(extents, small), pick(requested, small));
  if (taken) {
    taken = large_->adopt(pick(extents, large), pick(requested, large));
    if (!taken)
      small_->free(pick(extents, small));
  }
  count_alike();
  return taken;
}

void mixed_allocator::free(std::span<const extent> extents) {
  auto [small, large] = divide(extents.size(), [&](size_t i) { return in_small_area(extents[i]); });
  small_->free(pick(extents, small));
  large_->free(pick(extents, large));
  count_alike();
}

void mixed_allocator::count_alike() {
  auto small = small_->usage(), large = large_->usage();
  if (small.allocations + large.allocations == 0) {
    small_->expect(expected_);
    large_->expect(expected_);
  } else if (small.smallest_bytes != large.smallest_bytes) {
    uint64_t least = std::min(small.smallest_bytes - 1, large.smallest_bytes - 1) + 1; // 0 means none
    small_->expect(least);
    large_->expect(least);
  }
}

void mixed_allocator::expect(uint64_t smallest_bytes) {
  expected_ = smallest_bytes;
  small_->expect(expected_);
  large_->expect(expected_);
  count_alike();
}

allocator_usage mixed_allocator::usage() const {
  auto small = small_->usage(), large = large_->usage();
  return {.capacity_bytes = small.capacity_bytes + large.capacity_bytes,
          .used_bytes = small.used_bytes + large.used_bytes,
          .requested_bytes = small.requested_bytes + large.requested_bytes,
          .free_bytes = small.free_bytes + large.free_bytes,
          .largest_free_run =
              std::max(large.largest_free_run, std::min(small.largest_free_run, small_limit())),
          .free_runs = small.free_runs + large.free_runs,
          .allocations = small.allocations + large.allocations,
          .smallest_bytes = large.smallest_bytes,
          .whole_bytes = small.whole_bytes + large.whole_bytes};
}

result<void> mixed_allocator::grow(uint64_t bytes, uint64_t gap_bytes) {
  return large_->grow(bytes, gap_bytes);
}

result<void> mixed_allocator::retire(extent range) {
  uint64_t end = range.offset + range.size;
  if (auto valid = validate_segments(options_, range, UINT64_MAX, end > small_end_); !valid)
    return valid;
  uint64_t middle = std::clamp(small_end_, range.offset, end);
  if (end > middle)
    if (auto gone = large_->retire({middle, end - middle}); !gone)
      return gone;
  if (middle > range.offset)
    return small_->retire({range.offset, middle - range.offset});
  return {};
}

uint64_t mixed_allocator::used_in(extent range) const {
  return small_->used_in(range) + large_->used_in(range);
}

std::optional<std::vector<size_t>> mixed_allocator::choose(std::span<const uint64_t> sizes,
                                                           std::span<const extent> candidates) {
  auto [small, large] = divide(sizes.size(), [&](size_t i) { return is_small(sizes[i]); });
  auto [of_small, of_large] =
      divide(candidates.size(), [&](size_t i) { return in_small_area(candidates[i]); });
  auto chosen_in = [&](allocator& area, std::span<const uint64_t> wanted, std::span<const size_t> which) {
    auto chosen = area.choose(wanted, pick(candidates, which));
    if (chosen)
      for (size_t& i : *chosen)
        i = which[i];
    return chosen;
  };
  auto best = chosen_in(*large_, sizes, of_large); // places everything in the area of the large objects
  if (small.empty())
    return best;
  auto apart = chosen_in(*small_, pick(sizes, small), of_small);
  auto beside = chosen_in(*large_, pick(sizes, large), of_large);
  if (!apart || !beside)
    return best;
  apart->insert(apart->end(), beside->begin(), beside->end());
  std::sort(apart->begin(), apart->end());
  auto last = [](const std::vector<size_t>& chosen) { return chosen.empty() ? 0 : chosen.back() + 1; };
  return !best || last(*apart) <= last(*best) ? apart : best;
}

} // namespace terrace
