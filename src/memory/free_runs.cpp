#include "memory/free_runs.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {

/// Returns how many of the first `count` offsets are below `offset`. It has no branches, because the position
/// is unpredictable.
template <class Offsets>
size_t count_below(const Offsets& sorted, size_t count, uint64_t offset) {
  size_t begin = 0;
  while (count > 0) {
    size_t half = (count + 1) / 2;
    begin += sorted[begin + half - 1] < offset ? half : 0;
    count -= half;
  }
  return begin;
}

} // namespace

std::optional<free_runs::place> free_runs::last_before(uint64_t offset) const {
  size_t blocks = count_below(first_, first_.size(), offset);
  if (blocks == 0)
    return std::nullopt;
  const block& run = *blocks_[blocks - 1];
  return place{blocks - 1, static_cast<uint32_t>(count_below(run.offsets, run.count, offset)) - 1};
}

std::optional<free_runs::place> free_runs::next(std::optional<place> position) const {
  place after = position ? place{position->block, position->at + 1} : place{0, 0};
  if (after.block < blocks_.size() && after.at == blocks_[after.block]->count)
    after = {after.block + 1, 0};
  if (after.block == blocks_.size())
    return std::nullopt;
  return after;
}

void free_runs::count_in(uint64_t size) {
  bytes_ += size;
  whole_units_ += size - size % unit_;
  if (size >= largest_of_all_) {
    largest_of_all_ = size;
    largest_known_ = true;
  }
}

void free_runs::count_out(uint64_t size) {
  bytes_ -= size;
  whole_units_ -= size - size % unit_;
  if (size == largest_of_all_)
    largest_known_ = false;
}

void free_runs::measure_block(size_t which) {
  const block& run = *blocks_[which];
  uint64_t largest = 0;
  for (uint32_t i = 0; i < run.count; ++i)
    largest = std::max(largest, run.sizes[i]);
  largest_[which] = largest;
}

void free_runs::resize(place at, extent run) {
  block& in = *blocks_[at.block];
  uint64_t before = in.sizes[at.at];
  count_out(before);
  count_in(run.size);
  in.offsets[at.at] = run.offset;
  in.sizes[at.at] = run.size;
  if (at.at == 0)
    first_[at.block] = run.offset;
  if (run.size >= largest_[at.block])
    largest_[at.block] = run.size;
  else if (before == largest_[at.block])
    measure_block(at.block);
}

void free_runs::split(size_t full) {
  auto where = static_cast<std::ptrdiff_t>(full) + 1;
  blocks_.insert(blocks_.begin() + where, std::make_unique<block>());
  first_.insert(first_.begin() + where, 0);
  largest_.insert(largest_.begin() + where, 0);
  block &left = *blocks_[full], &right = *blocks_[full + 1];
  constexpr uint32_t half = block_max / 2;
  std::copy(left.offsets.begin() + half, left.offsets.end(), right.offsets.begin());
  std::copy(left.sizes.begin() + half, left.sizes.end(), right.sizes.begin());
  left.count = right.count = half;
  first_[full + 1] = right.offsets[0];
  measure_block(full);
  measure_block(full + 1);
}

void free_runs::insert(std::optional<place> before, extent run) {
  if (blocks_.empty()) {
    blocks_.push_back(std::make_unique<block>());
    first_.push_back(run.offset);
    largest_.push_back(0);
  }
  place at = before ? place{before->block, before->at + 1} : place{0, 0};
  if (blocks_[at.block]->count == block_max) {
    split(at.block);
    if (at.at > block_max / 2)
      at = {at.block + 1, at.at - block_max / 2};
  }
  block& in = *blocks_[at.block];
  std::copy_backward(in.offsets.begin() + at.at, in.offsets.begin() + in.count,
                     in.offsets.begin() + in.count + 1);
  std::copy_backward(in.sizes.begin() + at.at, in.sizes.begin() + in.count, in.sizes.begin() + in.count + 1);
  ++in.count;
  in.offsets[at.at] = run.offset;
  in.sizes[at.at] = run.size;
  first_[at.block] = in.offsets[0];
  largest_[at.block] = std::max(largest_[at.block], run.size);
  count_in(run.size);
  ++count_;
}

void free_runs::erase(place at) {
  block& run = *blocks_[at.block];
  uint64_t size = run.sizes[at.at];
  count_out(size);
  --count_;
  std::copy(run.offsets.begin() + at.at + 1, run.offsets.begin() + run.count, run.offsets.begin() + at.at);
  std::copy(run.sizes.begin() + at.at + 1, run.sizes.begin() + run.count, run.sizes.begin() + at.at);
  if (--run.count == 0) {
    drop_block(at.block);
    return;
  }
  first_[at.block] = run.offsets[0];
  if (at.block + 1 < blocks_.size() && run.count + blocks_[at.block + 1]->count <= block_max / 2) {
    const block& behind = *blocks_[at.block + 1];
    std::copy_n(behind.offsets.begin(), behind.count, run.offsets.begin() + run.count);
    std::copy_n(behind.sizes.begin(), behind.count, run.sizes.begin() + run.count);
    run.count += behind.count;
    drop_block(at.block + 1);
    measure_block(at.block);
  } else if (size == largest_[at.block]) {
    measure_block(at.block);
  }
}

void free_runs::drop_block(size_t which) {
  auto where = static_cast<std::ptrdiff_t>(which);
  blocks_.erase(blocks_.begin() + where);
  first_.erase(first_.begin() + where);
  largest_.erase(largest_.begin() + where);
}

void free_runs::give(extent range) {
  while (range.size > 0) {
    uint64_t piece = boundary_ == 0 ? range.size : std::min(range.size, boundary_ - range.offset % boundary_);
    give_within_boundary({range.offset, piece});
    range = {range.offset + piece, range.size - piece};
  }
}

void free_runs::give_within_boundary(extent range) {
  uint64_t end = range.offset + range.size;
  auto before = last_before(range.offset), after = next(before);
  auto run_at = [&](place p) {
    return extent{blocks_[p.block]->offsets[p.at], blocks_[p.block]->sizes[p.at]};
  };
  assert((!before || run_at(*before).offset + run_at(*before).size <= range.offset) && "freed twice");
  assert((!after || run_at(*after).offset >= end) && "freed twice");
  bool joins_before =
      before && !ends_run(range.offset) && run_at(*before).offset + run_at(*before).size == range.offset;
  bool joins_after = after && !ends_run(end) && run_at(*after).offset == end;
  if (joins_before && joins_after) {
    extent joined{run_at(*before).offset, run_at(*before).size + range.size + run_at(*after).size};
    erase(*after); // behind `before`, whose place is unchanged
    resize(*before, joined);
  } else if (joins_before) {
    resize(*before, {run_at(*before).offset, run_at(*before).size + range.size});
  } else if (joins_after) {
    resize(*after, {range.offset, range.size + run_at(*after).size});
  } else {
    insert(before, range);
  }
}

void free_runs::take(extent range) {
  while (range.size > 0) {
    auto at = last_before(range.offset + 1);
    assert(at && "not free");
    extent run{blocks_[at->block]->offsets[at->at], blocks_[at->block]->sizes[at->at]};
    assert(run.offset + run.size > range.offset && "not free");
    uint64_t run_end = run.offset + run.size;
    uint64_t end = std::min(range.offset + range.size, run_end);
    uint64_t left = range.offset - run.offset, right = run_end - end;
    if (left == 0 && right == 0) {
      erase(*at);
    } else if (left == 0) {
      resize(*at, {end, right});
    } else {
      resize(*at, {run.offset, left});
      if (right > 0)
        insert(at, {end, right});
    }
    range = {end, range.offset + range.size - end};
  }
}

std::optional<extent> free_runs::first_fit(uint64_t bytes) const {
  for (size_t b = 0; b < largest_.size(); ++b)
    if (largest_[b] >= bytes) {
      const block& run = *blocks_[b];
      for (uint32_t i = 0;; ++i)
        if (run.sizes[i] >= bytes)
          return extent{run.offsets[i], run.sizes[i]};
    }
  return std::nullopt;
}

std::optional<extent> free_runs::run_at(uint64_t offset) const {
  auto at = last_before(offset + 1);
  if (!at)
    return std::nullopt;
  extent run{blocks_[at->block]->offsets[at->at], blocks_[at->block]->sizes[at->at]};
  return run.offset + run.size > offset ? std::optional(run) : std::nullopt;
}

bool free_runs::contains(extent range) const {
  auto run = run_at(range.offset);
  return run && run->offset + run->size >= range.offset + range.size;
}

std::vector<extent> free_runs::within(extent range) const {
  std::vector<extent> found;
  uint64_t end = range.offset + range.size;
  auto at = last_before(range.offset + 1);
  for (at = at ? at : next(at); at; at = next(at)) {
    const block& run = *blocks_[at->block];
    uint64_t begin = run.offsets[at->at], run_end = begin + run.sizes[at->at];
    if (begin >= end)
      break;
    uint64_t from = std::max(begin, range.offset), to = std::min(run_end, end);
    if (from < to)
      found.push_back({from, to - from});
  }
  return found;
}

uint64_t free_runs::largest() const {
  if (!largest_known_) {
    largest_of_all_ = largest_.empty() ? 0 : *std::max_element(largest_.begin(), largest_.end());
    largest_known_ = true;
  }
  return largest_of_all_;
}

void free_runs::measure_in(uint64_t unit) {
  assert(unit > 0);
  unit_ = unit;
  whole_units_ = 0;
  for (auto& run : blocks_)
    for (uint32_t i = 0; i < run->count; ++i)
      whole_units_ += run->sizes[i] - run->sizes[i] % unit_;
}

} // namespace terrace
