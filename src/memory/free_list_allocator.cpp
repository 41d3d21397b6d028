#include "memory/free_list_allocator.hpp"

#include "memory/allocator_registry.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace terrace {

result<std::unique_ptr<allocator>> free_list_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new free_list_allocator(options));
}

free_list_allocator::free_list_allocator(const allocator_options& options) : options_(options) {
  give_back({0, options.capacity_bytes});
}

uint64_t free_list_allocator::physical_size(uint64_t bytes) const {
  return (bytes + options_.alignment_bytes - 1) & ~(options_.alignment_bytes - 1);
}

uint64_t free_list_allocator::largest_possible() const {
  uint64_t boundary = options_.boundary_bytes;
  return boundary == 0 ? options_.capacity_bytes : std::min(options_.capacity_bytes, boundary);
}

result<std::vector<extent>> free_list_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  std::vector<extent> taken;
  if (*total <= options_.capacity_bytes - used_bytes_) {
    if (take_one_run(sizes, taken))
      return taken;
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (take_each(sizes, order, taken))
      return taken;
    if (!std::equal(sizes.begin() + 1, sizes.end(), sizes.begin())) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
      if (take_each(sizes, order, taken))
        return taken;
    }
  }
  return fail_no_space(*this, sizes.size(), *total);
}

bool free_list_allocator::take_one_run(std::span<const uint64_t> sizes, std::vector<extent>& taken) {
  uint64_t total = 0;
  for (uint64_t bytes : sizes)
    total += physical_size(bytes);
  auto run = runs_.first_fit(total);
  if (total == 0 || !run)
    return total == 0;
  extent whole = take(*run, total);
  for (uint64_t bytes : sizes) {
    uint64_t physical = physical_size(bytes);
    taken.push_back({whole.offset, physical});
    live_.emplace(whole.offset, allocation{physical, bytes});
    requested_bytes_ += bytes;
    whole.offset += physical;
  }
  return true;
}

bool free_list_allocator::take_each(std::span<const uint64_t> sizes, std::span<const size_t> order,
                                    std::vector<extent>& taken) {
  taken.assign(sizes.size(), {});
  for (size_t i : order) {
    auto run = runs_.first_fit(physical_size(sizes[i]));
    if (!run) { // all or nothing
      std::erase_if(taken, [](const extent& e) { return e.size == 0; });
      free(taken);
      taken.clear();
      return false;
    }
    taken[i] = take(*run, physical_size(sizes[i]));
    live_.emplace(taken[i].offset, allocation{taken[i].size, sizes[i]});
    requested_bytes_ += sizes[i];
  }
  return true;
}

extent free_list_allocator::take(extent run, uint64_t bytes) {
  runs_.remove(run.offset);
  if (run.size > bytes)
    runs_.insert({run.offset + bytes, run.size - bytes});
  used_bytes_ += bytes;
  return {run.offset, bytes};
}

void free_list_allocator::free(std::span<const extent> extents) {
  std::vector<extent> sorted(extents.begin(), extents.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const extent& a, const extent& b) { return a.offset < b.offset; });
  extent joined;
  for (const extent& e : sorted) {
    auto found = live_.find(e.offset);
    assert(found != live_.end() && found->second.physical == e.size && "freed twice, or never allocated");
    requested_bytes_ -= found->second.requested;
    used_bytes_ -= e.size;
    live_.erase(found);
    if (joined.size > 0 && joined.offset + joined.size == e.offset) {
      joined.size += e.size;
    } else {
      give_back(joined);
      joined = e;
    }
  }
  give_back(joined);
}

void free_list_allocator::give_back(extent run) {
  uint64_t boundary = options_.boundary_bytes;
  while (run.size > 0) {
    uint64_t piece = boundary == 0 ? run.size : std::min(run.size, boundary - run.offset % boundary);
    give_back_within_boundary({run.offset, piece});
    run.offset += piece;
    run.size -= piece;
  }
}

void free_list_allocator::give_back_within_boundary(extent run) {
  uint64_t boundary = options_.boundary_bytes;
  uint64_t end = run.offset + run.size;
  if (boundary == 0 || run.offset % boundary != 0)
    if (auto before = runs_.ending_at(run.offset)) {
      runs_.remove(before->offset);
      run = {before->offset, before->size + run.size};
    }
  if (boundary == 0 || end % boundary != 0)
    if (auto after = runs_.beginning_at(end)) {
      runs_.remove(after->offset);
      run.size += after->size;
    }
  runs_.insert(run);
}

allocator_usage free_list_allocator::usage() const {
  return {.capacity_bytes = options_.capacity_bytes,
          .used_bytes = used_bytes_,
          .requested_bytes = requested_bytes_,
          .free_bytes = options_.capacity_bytes - used_bytes_,
          .largest_free_run = runs_.largest(),
          .free_runs = runs_.count(),
          .allocations = live_.size()};
}

} // namespace terrace
