#include "storage/resize_plan.hpp"

#include "storage/record_block.hpp"
#include "storage/volume_layout.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace terrace {

namespace {

struct range {
  uint64_t begin = 0;
  uint64_t end = 0;
  friend auto operator<=>(const range&, const range&) = default;
};

/// The free bytes in a window beside sorted ranges; the smallest gap that is large enough is taken first.
class free_gaps {
 public:
  free_gaps(range window, std::vector<range> taken) {
    std::sort(taken.begin(), taken.end());
    uint64_t at = window.begin;
    for (const range& one : taken) {
      add(at, std::min(one.begin, window.end));
      at = std::max(at, one.end);
    }
    add(at, window.end);
  }

  /// Returns nullopt if no gap is large enough.
  std::optional<uint64_t> take(uint64_t bytes) {
    auto gap = gaps_.lower_bound({bytes, 0});
    if (gap == gaps_.end())
      return std::nullopt;
    auto [size, begin] = *gap;
    gaps_.erase(gap);
    add(begin + bytes, begin + size);
    return begin;
  }

 private:
  void add(uint64_t begin, uint64_t end) {
    if (begin < end)
      gaps_.insert({end - begin, begin});
  }

  std::set<std::pair<uint64_t, uint64_t>> gaps_; ///< size, begin
};

bool apart(range a, range b) { return a.end <= b.begin || b.end <= a.begin; }

range area(const volume_layout& layout, uint64_t which) {
  return {layout.checkpoint_area(which), layout.checkpoint_area(which) + layout.checkpoint_bytes};
}

} // namespace

uint64_t records_in_checkpoint(const volume_layout& layout) {
  return (layout.checkpoint_bytes / record_block_bytes - 1) * records_per_block;
}

uint64_t area_that_stays(const volume_layout& before, const volume_layout& after) {
  return after.checkpoint_area(1) >= before.checkpoint_area(1) ? 0 : 1;
}

volume_layout layout_after(const volume_layout& now, uint64_t capacity_bytes, uint64_t objects) {
  volume_layout next = layout_for(capacity_bytes, objects);
  uint64_t stays = area_that_stays(now, next);
  return apart(area(now, stays), area(next, 1 - stays)) ? next : now;
}

std::vector<resize_target> resize_targets(const superblock& block, uint64_t capacity_bytes,
                                          uint64_t objects) {
  volume_layout next = layout_after(block.layout, capacity_bytes, objects);
  if (next.extents_begin < block.layout.extents_begin && capacity_bytes < block.capacity_bytes)
    return {{next, block.capacity_bytes}, {next, capacity_bytes}};
  return {{next, capacity_bytes}};
}

resize_plan plan_places(const superblock& block, const resize_target& target,
                        const std::vector<index_record>& objects, size_t spaces) {
  resize_plan plan;
  plan.capacity_bytes = target.capacity_bytes;
  plan.layout = target.layout;
  uint64_t records = records_in_checkpoint(plan.layout);
  uint64_t room = records - std::min<uint64_t>(records, spaces);
  size_t too_many = objects.size() - std::min<uint64_t>(objects.size(), room);

  range window{std::max(block.layout.extents_begin, plan.layout.extents_begin), plan.capacity_bytes};
  auto place = [&](const index_record& object) {
    uint64_t begin = block.layout.extents_begin + object.offset;
    return range{begin, begin + object.physical_bytes};
  };
  auto stays = [&](const range& at) { return at.begin >= window.begin && at.end <= window.end; };
  std::vector<range> taken;
  taken.reserve(objects.size());
  for (const index_record& object : objects)
    taken.push_back(place(object)); // objects that go count too: they live until the new places count
  free_gaps gaps(window, std::move(taken));
  for (size_t i = objects.size(); i-- > 0;) {
    range at = place(objects[i]);
    std::optional<uint64_t> to;
    if (i >= too_many)
      to = stays(at) ? at.begin : gaps.take(objects[i].physical_bytes);
    if (!to) {
      plan.dropped.add(objects[i]);
      continue;
    }
    if (*to != at.begin)
      plan.moved.add(objects[i]);
    plan.objects.push_back({objects[i], at.begin, *to});
  }
  std::reverse(plan.objects.begin(), plan.objects.end());
  return plan;
}

} // namespace terrace
