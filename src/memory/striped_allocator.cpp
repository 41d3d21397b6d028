#include "memory/striped_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace terrace {

striped_allocator::striped_allocator(std::vector<std::unique_ptr<allocator>> paths, const path_map& map,
                                     path_check usable)
    : paths_(std::move(paths)), map_(map), usable_(std::move(usable)), turns_(paths_.size()) {
  assert(paths_.size() == map_.paths());
}

// ---- totals over the paths ----

uint64_t striped_allocator::largest_possible() const {
  uint64_t largest = 0;
  for (const auto& path : paths_)
    largest = std::max(largest, path->largest_possible());
  return largest;
}

allocator_usage striped_allocator::usage() const {
  allocator_usage all;
  for (size_t i = 0; i < paths_.size(); ++i) {
    allocator_usage one = paths_[i]->usage();
    all.capacity_bytes += one.capacity_bytes;
    all.used_bytes += one.used_bytes;
    all.requested_bytes += one.requested_bytes;
    all.free_bytes += one.free_bytes;
    all.free_runs += one.free_runs;
    all.allocations += one.allocations;
    all.whole_bytes += one.whole_bytes;
    all.smallest_bytes = std::max(all.smallest_bytes, one.smallest_bytes);
    if (usable_(i))
      all.largest_free_run = std::max(all.largest_free_run, one.largest_free_run);
  }
  return all;
}

void striped_allocator::expect(uint64_t smallest_bytes) {
  expected_ = smallest_bytes;
  for (const auto& path : paths_)
    path->expect(smallest_bytes);
  told_ = smallest_bytes;
  note_smallest();
}

/// All paths count in units of the smallest object on any of them.
void striped_allocator::note_smallest() {
  uint64_t smallest = expected_;
  bool live = false;
  for (const auto& path : paths_) {
    allocator_usage one = path->usage();
    live = live || one.allocations != 0;
    if (one.smallest_bytes != 0)
      smallest = smallest == 0 ? one.smallest_bytes : std::min(smallest, one.smallest_bytes);
  }
  if (!live)
    smallest = expected_;
  if (smallest == told_)
    return;
  told_ = smallest;
  for (const auto& path : paths_)
    path->expect(smallest);
}

result<void> striped_allocator::grow(uint64_t bytes, uint64_t gap_bytes) {
  return paths_.back()->grow(bytes, gap_bytes);
}

result<void> striped_allocator::retire(extent range) {
  size_t path = map_.path_of(range.offset);
  return paths_[path]->retire(local(range));
}

uint64_t striped_allocator::used_in(extent range) const {
  return paths_[map_.path_of(range.offset)]->used_in(local(range));
}

// ---- allocating and freeing ----

std::vector<uint64_t> striped_allocator::free_of_usable() const {
  std::vector<uint64_t> room(paths_.size());
  for (size_t i = 0; i < room.size(); ++i)
    room[i] = usable_(i) ? paths_[i]->usage().free_bytes : 0;
  return room;
}

uint64_t striped_allocator::room_bytes() const {
  auto room = free_of_usable();
  return std::accumulate(room.begin(), room.end(), uint64_t{0});
}

constexpr uint64_t shares =
    4; ///< shares of the path with the most room; finer differences would not let turns alternate

/// Assigns objects to paths by weighted round robin.
striped_allocator::assignment striped_allocator::spread(std::span<const uint64_t> sizes,
                                                        std::vector<uint64_t> room,
                                                        std::vector<int64_t>& turns) const {
  assignment where;
  where.reserve(sizes.size());
  for (uint64_t size : sizes) {
    uint64_t physical = physical_size(size);
    uint64_t most = *std::max_element(room.begin(), room.end());
    int64_t given = 0;
    std::optional<size_t> next;
    for (size_t i = 0; i < room.size(); ++i) {
      if (room[i] < physical)
        continue;
      auto share = static_cast<int64_t>(std::max<uint64_t>((room[i] * shares + most / 2) / most, 1));
      turns[i] += share;
      given += share;
      if (!next || turns[i] > turns[*next])
        next = i;
    }
    if (next) {
      turns[*next] -= given;
      room[*next] -= physical;
    }
    where.push_back(
        next.value_or(static_cast<size_t>(std::max_element(room.begin(), room.end()) - room.begin())));
  }
  return where;
}

std::optional<extent> striped_allocator::take_one(size_t path, uint64_t size) {
  if (size > paths_[path]->largest_possible())
    return std::nullopt;
  auto taken = paths_[path]->allocate({&size, 1});
  if (!taken)
    return std::nullopt;
  return extent{taken->front().offset + map_.begin(path), taken->front().size};
}

void striped_allocator::give_back(std::vector<extent>& taken) {
  for (const extent& e : taken)
    if (e.size != 0) {
      extent own = local(e);
      paths_[map_.path_of(e.offset)]->free({&own, 1});
    }
  taken.clear();
}

/// Each path takes its objects as one batch; the rest go wherever they fit.
bool striped_allocator::place(std::span<const uint64_t> sizes, const assignment& where,
                              std::vector<extent>& taken) {
  taken.assign(sizes.size(), {});
  std::vector<size_t> left;
  std::vector<size_t> own;
  std::vector<uint64_t> own_sizes;
  for (size_t path = 0; path < paths_.size(); ++path) {
    own.clear();
    own_sizes.clear();
    for (size_t i = 0; i < sizes.size(); ++i)
      if (where[i] == path) {
        own.push_back(i);
        own_sizes.push_back(sizes[i]);
      }
    if (own.empty())
      continue;
    std::optional<std::vector<extent>> batch;
    if (usable_(path))
      if (auto given = paths_[path]->allocate(own_sizes))
        batch = std::move(*given);
    if (!batch) {
      left.insert(left.end(), own.begin(), own.end());
      continue;
    }
    for (size_t n = 0; n < own.size(); ++n)
      taken[own[n]] = {(*batch)[n].offset + map_.begin(path), (*batch)[n].size};
  }
  return left.empty() || place_left(sizes, std::move(left), taken);
}

bool striped_allocator::place_left(std::span<const uint64_t> sizes, std::vector<size_t> left,
                                   std::vector<extent>& taken) {
  std::stable_sort(left.begin(), left.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  for (size_t i : left) {
    auto room = free_of_usable();
    std::vector<size_t> order(paths_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return room[a] > room[b]; });
    for (size_t path : order)
      if (room[path] != 0 && taken[i].size == 0)
        if (auto one = take_one(path, sizes[i]))
          taken[i] = *one;
    if (taken[i].size == 0) { // all or nothing
      give_back(taken);
      return false;
    }
  }
  return true;
}

bool striped_allocator::try_allocate(std::span<const uint64_t> sizes, std::vector<extent>& taken) {
  std::vector<int64_t> turns = turns_;
  if (place(sizes, spread(sizes, free_of_usable(), turns), taken)) {
    turns_ = std::move(turns);
    return true;
  }
  bool as_chosen = std::equal(sizes.begin(), sizes.end(), chosen_.sizes.begin(), chosen_.sizes.end()) &&
                   std::all_of(chosen_.paths.begin(), chosen_.paths.end(), usable_);
  return as_chosen && place(sizes, chosen_.paths, taken);
}

result<std::vector<extent>> striped_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  std::vector<extent> taken;
  if (sizes.empty())
    return taken;
  bool placed = try_allocate(sizes, taken);
  note_smallest(); // failed attempts count too
  if (!placed)
    return fail_no_space(*this, sizes.size(), *total);
  return taken;
}

result<void> striped_allocator::adopt(std::span<const extent> extents, std::span<const uint64_t> requested) {
  std::vector<std::vector<extent>> own(paths_.size());
  std::vector<std::vector<uint64_t>> own_requested(paths_.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    size_t path = map_.path_of(extents[i].offset);
    own[path].push_back(local(extents[i]));
    own_requested[path].push_back(requested[i]);
  }
  for (size_t path = 0; path < paths_.size(); ++path) {
    auto adopted = paths_[path]->adopt(own[path], own_requested[path]);
    if (adopted)
      continue;
    for (size_t before = 0; before < path; ++before)
      paths_[before]->free(own[before]);
    return adopted;
  }
  note_smallest();
  return {};
}

void striped_allocator::free(std::span<const extent> extents) {
  std::vector<std::vector<extent>> own(paths_.size());
  for (const extent& e : extents)
    own[map_.path_of(e.offset)].push_back(local(e));
  for (size_t path = 0; path < paths_.size(); ++path)
    if (!own[path].empty())
      paths_[path]->free(own[path]);
  note_smallest();
}

// Chooses the victims that make room on each path: `striped_allocator::choose`.

/// The state of one call of `choose`.
class striped_allocator::choosing {
 public:
  choosing(striped_allocator& owner, std::span<const uint64_t> sizes, std::span<const extent> candidates)
      : of_(owner), sizes_(sizes), candidates_(candidates), free_(owner.free_of_usable()) {
    for (uint64_t size : sizes)
      needed_ += owner.physical_size(size);
  }

  std::optional<std::vector<size_t>> choose() {
    if (sizes_.size() == 1)
      return choose_for_one();
    for (size_t count = enough_bytes();; count = std::min(2 * count, candidates_.size())) {
      take_candidates(count);
      auto turns = of_.turns_;
      if (auto chosen = choose_as(of_.spread(sizes_, potential(), turns)))
        return chosen;
      if (count == candidates_.size())
        return choose_one_by_one();
    }
  }

 private:
  /// Returns the length of the shortest prefix of the list with enough bytes; at least 1 if there is a candidate.
  size_t enough_bytes() const {
    uint64_t bytes = std::accumulate(free_.begin(), free_.end(), uint64_t{0});
    size_t count = 0;
    while (count < candidates_.size() && (count == 0 || bytes < needed_)) {
      if (of_.usable_(of_.map_.path_of(candidates_[count].offset)))
        bytes += candidates_[count].size;
      ++count;
    }
    return count;
  }

  /// Distributes the first `count` candidates among the paths.
  void take_candidates(size_t count) {
    own_.assign(of_.paths_.size(), {});
    index_.assign(of_.paths_.size(), {});
    for (size_t i = 0; i < count; ++i) {
      size_t path = of_.map_.path_of(candidates_[i].offset);
      own_[path].push_back(of_.local(candidates_[i]));
      index_[path].push_back(i);
    }
  }

  std::vector<uint64_t> potential() const {
    auto room = free_;
    for (size_t path = 0; path < room.size(); ++path)
      if (of_.usable_(path))
        for (const extent& e : own_[path])
          room[path] += e.size;
    return room;
  }

  std::optional<std::vector<size_t>> on_path(size_t path, std::span<const uint64_t> sizes) const {
    for (uint64_t size : sizes)
      if (size > of_.paths_[path]->largest_possible())
        return std::nullopt;
    auto chosen = of_.paths_[path]->choose(sizes, own_[path]);
    if (chosen)
      for (size_t& i : *chosen)
        i = index_[path][i];
    return chosen;
  }

  std::optional<std::vector<size_t>> choose_for_one() {
    take_candidates(candidates_.size());
    std::optional<std::vector<size_t>> best;
    for (size_t path = 0; path < of_.paths_.size(); ++path) {
      if (!of_.usable_(path))
        continue;
      auto chosen = on_path(path, sizes_);
      if (!chosen || chosen->empty() || (best && best->back() <= chosen->back()))
        continue;
      best = std::move(chosen);
      of_.chosen_ = {{sizes_[0]}, {path}};
    }
    return best ? std::optional(finish(std::move(*best))) : std::nullopt;
  }

  std::vector<uint64_t> sizes_on(size_t path, const assignment& where) const {
    std::vector<uint64_t> own;
    for (size_t i = 0; i < where.size(); ++i)
      if (where[i] == path)
        own.push_back(sizes_[i]);
    return own;
  }

  std::optional<std::vector<size_t>> choose_as(const assignment& where) {
    std::vector<size_t> all;
    for (size_t path = 0; path < of_.paths_.size(); ++path) {
      auto own = sizes_on(path, where);
      if (own.empty())
        continue;
      auto chosen = of_.usable_(path) ? on_path(path, own) : std::nullopt;
      if (!chosen)
        return std::nullopt;
      all.insert(all.end(), chosen->begin(), chosen->end());
    }
    of_.chosen_ = {{sizes_.begin(), sizes_.end()}, where};
    return finish(std::move(all));
  }

  /// Tries the largest first, each on the first path where it still fits with the others.
  std::optional<std::vector<size_t>> choose_one_by_one() {
    const size_t nowhere = of_.paths_.size();
    std::vector<size_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes_[a] > sizes_[b]; });
    assignment where(sizes_.size(), nowhere);
    for (size_t i : order) {
      for (size_t path = 0; path < nowhere; ++path) {
        where[i] = path;
        if (of_.usable_(path) && on_path(path, sizes_on(path, where)))
          break;
        where[i] = nowhere;
      }
      if (where[i] == nowhere)
        return std::nullopt;
    }
    return choose_as(where);
  }

  /// Candidates on unusable paths are chosen in their turn, too; otherwise the oldest of them would be
  /// proposed forever.
  std::vector<size_t> finish(std::vector<size_t> chosen) const {
    std::sort(chosen.begin(), chosen.end());
    std::vector<size_t> also;
    if (!chosen.empty())
      for (size_t i = 0; i < chosen.back(); ++i)
        if (!of_.usable_(of_.map_.path_of(candidates_[i].offset)))
          also.push_back(i);
    chosen.insert(chosen.end(), also.begin(), also.end());
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  striped_allocator& of_;
  std::span<const uint64_t> sizes_;
  std::span<const extent> candidates_;
  std::vector<uint64_t> free_; ///< by path; 0 if nothing may be placed there
  uint64_t needed_ = 0;
  std::vector<std::vector<extent>> own_;   ///< by path: the candidates on it
  std::vector<std::vector<size_t>> index_; ///< and their indices among all candidates
};

std::optional<std::vector<size_t>> striped_allocator::choose(std::span<const uint64_t> sizes,
                                                             std::span<const extent> candidates) {
  std::vector<extent> taken;
  auto turns = turns_;
  if (sizes.empty() || try_allocate(sizes, taken)) {
    give_back(taken);
    turns_ = std::move(turns);
    note_smallest();
    return std::vector<size_t>{};
  }
  note_smallest();
  return choosing(*this, sizes, candidates).choose();
}

} // namespace terrace
