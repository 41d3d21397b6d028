#include "memory/arena_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

result<std::vector<extent>> arena_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  std::vector<extent> taken;
  if (*total <= space_.free_bytes() && place(sizes, *total, taken))
    return taken;
  return fail_no_space(*this, sizes.size(), *total);
}

bool arena_allocator::place(std::span<const uint64_t> sizes, uint64_t, std::vector<extent>& taken) {
  if (sizes.size() == 1) {
    if (auto one = take_one(sizes[0], false))
      taken.push_back(*one);
    return !taken.empty();
  }
  auto orders = placing_orders(sizes);
  for (const auto& order : orders)
    if (take_each(sizes, order, taken, false))
      return true;
  return take_each(sizes, orders.back(), taken, true);
}

bool arena_allocator::take_each(std::span<const uint64_t> sizes, std::span<const size_t> order,
                                std::vector<extent>& taken, bool first_fit) {
  taken.assign(sizes.size(), {});
  for (size_t i : order) {
    auto one = take_one(sizes[i], first_fit);
    if (!one) { // all or nothing
      std::erase_if(taken, [](const extent& e) { return e.size == 0; });
      free(taken);
      taken.clear();
      return false;
    }
    taken[i] = *one;
  }
  return true;
}

result<void> arena_allocator::adopt(std::span<const extent> extents, std::span<const uint64_t> requested) {
  auto taken = space_.adopt(extents, requested, no_tag);
  if (taken)
    adopted(extents);
  return taken;
}

result<void> arena_allocator::grow(uint64_t bytes, uint64_t gap_bytes) {
  extent added{space_.end() + gap_bytes, bytes};
  auto done = space_.grow(bytes, gap_bytes);
  if (done)
    grown(added);
  return done;
}

result<void> arena_allocator::retire(extent range) {
  auto gone = space_.retire(range);
  if (gone)
    retired(range);
  return gone;
}

result<std::unique_ptr<allocator>> free_list_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new free_list_allocator(options));
}

bool free_list_allocator::place(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken) {
  if (take_one_run(sizes, total, taken))
    return true;
  return sizes.size() > 1 && arena_allocator::place(sizes, total, taken);
}

bool free_list_allocator::take_one_run(std::span<const uint64_t> sizes, uint64_t total,
                                       std::vector<extent>& taken) {
  if (total == 0)
    return true;
  auto run = space_.runs().first_fit(total);
  if (!run)
    return false;
  space_.take_run({run->offset, total});
  taken.reserve(sizes.size());
  uint64_t offset = run->offset;
  for (uint64_t bytes : sizes) {
    taken.push_back({offset, physical_size(bytes)});
    space_.add(taken.back(), bytes, no_tag);
    offset += taken.back().size;
  }
  return true;
}

std::optional<extent> free_list_allocator::take_one(uint64_t requested, bool) {
  auto run = space_.runs().first_fit(physical_size(requested));
  if (!run)
    return std::nullopt;
  extent made{run->offset, physical_size(requested)};
  space_.take_run(made);
  space_.add(made, requested, no_tag);
  return made;
}

void free_list_allocator::free(std::span<const extent> extents) {
  extent joined;
  auto give = [&](const extent& e) {
    space_.remove(e);
    if (joined.size > 0 && joined.offset + joined.size == e.offset) {
      joined.size += e.size;
    } else {
      if (joined.size > 0)
        space_.give_run(joined);
      joined = e;
    }
  };
  if (extents.size() < 2) {
    for (const extent& e : extents)
      give(e);
  } else {
    for (const extent& e : by_offset(extents))
      give(e);
  }
  if (joined.size > 0)
    space_.give_run(joined);
}

namespace {

uint64_t overlap(const extent& a, const extent& b) {
  uint64_t begin = std::max(a.offset, b.offset);
  uint64_t end = std::min(a.offset + a.size, b.offset + b.size);
  return end > begin ? end - begin : 0;
}

} // namespace

extent_map::extent_map(const allocator_options& options)
    : options_(options), runs_(options.boundary_bytes), usable_(options.boundary_bytes),
      end_(options.capacity_bytes) {
  extent ours{options.reserved_bytes, end_ - options.reserved_bytes};
  runs_.give(ours);
  usable_.give(ours);
}

void extent_map::add(extent made, uint64_t requested, uint32_t tag) {
  live_.insert({made.offset, requested, tag});
  used_bytes_ += made.size;
  requested_bytes_ += requested;
  if (smallest_ == 0 || made.size < smallest_) {
    smallest_ = made.size;
    if (smallest_ != runs_.unit())
      runs_.measure_in(smallest_);
  }
}

live_extents::entry extent_map::remove(const extent& e) {
  auto* found = live_.find(e.offset);
  assert(found && physical_size(found->requested) == e.size && "freed twice, or never allocated");
  auto gone = live_.remove(found);
  used_bytes_ -= e.size;
  requested_bytes_ -= gone.requested;
  if (live_.size() == 0)
    expect(expected_); // the next object may set it
  return gone;
}

void extent_map::expect(uint64_t smallest_bytes) {
  expected_ = smallest_bytes;
  if (live_.size() > 0 && (expected_ == 0 || smallest_ <= expected_))
    return;
  smallest_ = expected_;
  if (smallest_ != 0 && smallest_ != runs_.unit())
    runs_.measure_in(smallest_);
}

result<void> extent_map::adopt(std::span<const extent> extents, std::span<const uint64_t> requested,
                               uint32_t tag) {
  assert(extents.size() == requested.size());
  constexpr size_t ahead = 16; // so many slots of the table are on their way into the cache
  live_.reserve(extents.size());
  extent row;           // neighbors that are in the table and still free: one search takes them all
  uint64_t row_max = 0; // size of the free run from the beginning of the row
  auto take_row = [&] {
    if (row.size != 0)
      runs_.take(row);
    row = {};
  };
  for (size_t i = 0; i < extents.size(); ++i) {
    if (i + ahead < extents.size())
      live_.prefetch(extents[i + ahead].offset);
    const extent& e = extents[i];
    bool fits = e.size > 0 && e.offset % options_.alignment_bytes == 0 && e.offset < end_ &&
                e.size <= end_ - e.offset && physical_size(requested[i]) == e.size;
    if (fits && (row.size == 0 || e.offset != row.offset + row.size || e.size > row_max - row.size)) {
      take_row();
      auto run = runs_.run_at(e.offset);
      row.offset = e.offset;
      row_max = run ? run->offset + run->size - e.offset : 0;
      fits = e.size <= row_max;
    }
    if (!fits) {
      take_row();
      auto wrong = fail_place(e, requested[i]);
      for (; i > 0; --i) {
        give_run(extents[i - 1]);
        remove(extents[i - 1]);
      }
      return wrong;
    }
    row.size += e.size;
    add(e, requested[i], tag);
  }
  take_row();
  return {};
}

void extent_map::give_run(extent run) {
  live_.prefetch(run.offset);
  if (retired_.empty()) {
    runs_.give(run);
    return;
  }
  for (const extent& part : usable_.within(run))
    runs_.give(part);
  for (retired& r : retired_)
    r.used -= overlap(r.range, run);
}

allocator_usage extent_map::usage() const {
  return {.capacity_bytes = used_bytes_ + runs_.bytes(),
          .used_bytes = used_bytes_,
          .requested_bytes = requested_bytes_,
          .free_bytes = runs_.bytes(),
          .largest_free_run = runs_.largest(),
          .free_runs = runs_.count(),
          .allocations = live_.size(),
          .smallest_bytes = smallest_,
          .whole_bytes = smallest_ == 0 ? runs_.bytes() : runs_.whole_units()};
}

result<void> extent_map::grow(uint64_t bytes, uint64_t gap_bytes) {
  if (auto valid = validate_growth(options_, end_, bytes, gap_bytes); !valid)
    return valid;
  end_ += gap_bytes;
  runs_.give({end_, bytes});
  usable_.give({end_, bytes});
  end_ += bytes;
  return {};
}

result<void> extent_map::retire(extent range) {
  bool ends_there =
      !usable_.run_at(range.offset + range.size); // the end of the arena, a gap, or a retired range
  if (auto valid = validate_segments(options_, range, end_, ends_there); !valid)
    return valid;
  uint64_t there = 0, free = 0;
  for (const extent& part : usable_.within(range))
    there += part.size;
  if (there != range.size)
    return fail_retired_before(range);
  for (const extent& part : runs_.within(range)) {
    runs_.take(part);
    free += part.size;
  }
  usable_.take(range);
  retired_.push_back({range, range.size - free});
  return {};
}

uint64_t extent_map::used_in(extent range) const {
  uint64_t used = 0;
  for (const retired& r : retired_)
    if (overlap(r.range, range) == r.range.size)
      used += r.used;
  return used;
}

std::vector<extent> extent_map::trial(std::span<const uint64_t> sorted_sizes) {
  std::vector<extent> placed;
  for (uint64_t bytes : sorted_sizes) {
    auto run = runs_.first_fit(bytes);
    if (!run)
      break;
    placed.push_back({run->offset, bytes});
    runs_.take(placed.back());
  }
  for (const extent& e : placed)
    runs_.give(e);
  if (placed.size() < sorted_sizes.size())
    placed.clear();
  return placed;
}

std::optional<std::vector<size_t>> extent_map::choose(std::span<const uint64_t> sizes,
                                                      std::span<const extent> candidates) {
  std::vector<uint64_t> sorted;
  uint64_t needed = 0;
  for (uint64_t bytes : sizes) {
    sorted.push_back(physical_size(bytes));
    needed += sorted.back();
  }
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.empty() || !trial(sorted).empty())
    return std::vector<size_t>{};
  // Candidates are freed tentatively and restored before the function returns. First enough bytes are freed;
  // then every further candidate is tried while there are few, later only after each additional eighth.
  std::vector<extent> given;
  std::vector<extent> placed;
  size_t next_trial = 0;
  for (size_t i = 0; i < candidates.size() && placed.empty(); ++i) {
    for (const extent& part : usable_.within(candidates[i])) {
      runs_.give(part);
      given.push_back(part);
    }
    bool last = i + 1 == candidates.size();
    if (runs_.bytes() >= needed && runs_.largest() >= sorted.front() && (i >= next_trial || last)) {
      placed = trial(sorted);
      next_trial = i + 1 + (sorted.size() == 1 ? 0 : i / 8);
    }
  }
  for (const extent& part : given)
    runs_.take(part);
  if (placed.empty())
    return std::nullopt;
  std::sort(placed.begin(), placed.end(),
            [](const extent& a, const extent& b) { return a.offset < b.offset; });
  std::vector<size_t> chosen;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const extent& e = candidates[i];
    auto behind = std::lower_bound(placed.begin(), placed.end(), e.offset + e.size,
                                   [](const extent& p, uint64_t end) { return p.offset < end; });
    if (behind != placed.begin() && overlap(*std::prev(behind), e) > 0)
      chosen.push_back(i);
  }
  return chosen;
}

} // namespace terrace
