#include "tests/memory/allocator_contract.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

namespace terrace::test {

namespace {

/// The arena as a map of live extents: slow and obvious.
struct naive_arena {
  struct piece {
    uint64_t physical, requested;
  };
  std::map<uint64_t, piece> live;

  std::optional<std::string> add(const extent& e, uint64_t requested, const allocator_options& o) {
    if (e.offset % o.alignment_bytes != 0 || e.size % o.alignment_bytes != 0)
      return "an extent is not aligned";
    if (e.size < requested || e.offset + e.size > o.capacity_bytes)
      return "an extent is too small or leaves the arena";
    if (o.boundary_bytes != 0 && e.offset / o.boundary_bytes != (e.offset + e.size - 1) / o.boundary_bytes)
      return "an extent crosses a boundary";
    auto after = live.lower_bound(e.offset);
    if (after != live.end() && after->first < e.offset + e.size)
      return "an extent overlaps the next one";
    if (after != live.begin() && std::prev(after)->first + std::prev(after)->second.physical > e.offset)
      return "an extent overlaps the one before";
    live[e.offset] = {e.size, requested};
    return std::nullopt;
  }

  std::optional<std::string> compare(const allocator_usage& usage) const {
    uint64_t used = 0, requested = 0;
    for (auto& [offset, p] : live)
      used += p.physical, requested += p.requested;
    if (usage.used_bytes != used || usage.requested_bytes != requested || usage.allocations != live.size())
      return "usage does not add up to what is live";
    if (usage.used_bytes + usage.free_bytes != usage.capacity_bytes ||
        usage.largest_free_run > usage.free_bytes)
      return "used and free do not add up to the capacity";
    if ((usage.free_bytes > 0) != (usage.free_runs > 0))
      return "free bytes and free runs contradict each other";
    if (usage.whole_bytes > usage.free_bytes ||
        (usage.smallest_bytes > 0 && usage.whole_bytes % usage.smallest_bytes != 0) ||
        (usage.smallest_bytes > 0 && usage.largest_free_run >= usage.smallest_bytes &&
         usage.whole_bytes == 0))
      return "the free bytes that whole objects would fill are miscounted";
    return std::nullopt;
  }
};

/// Checks that one request can have exactly `largest_free_run`.
std::optional<std::string> probe_largest(allocator& a) {
  uint64_t largest = a.usage().largest_free_run;
  if (largest > 0) {
    auto taken = a.allocate({&largest, 1});
    if (!taken)
      return "the largest free run cannot be had: " + taken.error().text;
    a.free(*taken);
  }
  uint64_t more = largest + 1;
  auto taken = a.allocate({&more, 1});
  if (taken)
    return "more than the largest free run was had";
  if (taken.error().code != (more > a.largest_possible() ? errc::bad_request : errc::no_space))
    return "a request that does not fit has the wrong code";
  return std::nullopt;
}

/// An allocator that adopts the extents of another one is in the same state.
std::optional<std::string> probe_adoption(allocator& heir, const naive_arena& model,
                                          const allocator_usage& wanted) {
  std::vector<extent> extents;
  std::vector<uint64_t> requested;
  for (auto& [offset, p] : model.live) {
    extents.push_back({offset, p.physical});
    requested.push_back(p.requested);
  }
  if (extents.empty())
    return std::nullopt;
  for (size_t twice : {size_t{0}, extents.size() - 1}) {
    extents.push_back(extents[twice]);
    requested.push_back(requested[twice]);
    if (heir.adopt(extents, requested) || heir.usage().used_bytes != 0)
      return "a place was adopted twice, or what was adopted before it stayed";
    extents.pop_back();
    requested.pop_back();
  }
  if (heir.adopt({{{extents[0].offset + 1, extents[0].size}}}, {{requested[0]}}))
    return "a crooked place was adopted";
  if (!heir.adopt(extents, requested))
    return "what one allocator gave cannot be adopted by another";
  auto usage = heir.usage();
  if (usage.used_bytes != wanted.used_bytes || usage.requested_bytes != wanted.requested_bytes ||
      usage.largest_free_run != wanted.largest_free_run || usage.allocations != wanted.allocations)
    return "the heir's usage differs";
  uint64_t size = usage.largest_free_run;
  if (auto taken = size == 0 ? result<std::vector<extent>>{} : heir.allocate({&size, 1}); !taken)
    return "the heir cannot allocate what it says is free";
  else
    heir.free(*taken);
  for (const extent& e : extents)
    if (heir.live_size(e.offset) != e.size || heir.live_size(e.offset + 1) != 0)
      return "a live extent is not known, or has another size";
  heir.free(extents);
  for (const extent& e : extents)
    if (heir.live_size(e.offset) != 0)
      return "what is free counts as live";
  if (heir.usage().used_bytes != 0 || heir.usage().largest_free_run != heir.largest_possible())
    return "the heir cannot free what it adopted";
  return std::nullopt;
}

/// Checks `whole_bytes` by allocating objects of the smallest size.
std::optional<std::string> probe_fragmentation(allocator& a, const naive_arena& model) {
  std::vector<extent> extents, filled;
  std::vector<uint64_t> requested;
  for (auto& [offset, p] : model.live) {
    extents.push_back({offset, p.physical});
    requested.push_back(p.requested);
  }
  a.expect(a.physical_size(1));
  if (a.usage().smallest_bytes != a.physical_size(1))
    return "an expected size is not the smallest";
  if (!a.adopt(extents, requested))
    return "what one allocator gave cannot be adopted by another";
  auto before = a.usage();
  uint64_t allocatable = 0, smallest = before.smallest_bytes;
  while (auto taken = a.allocate({&smallest, 1})) {
    filled.push_back(taken->front());
    allocatable += taken->front().size;
  }
  if (smallest != a.physical_size(1) || allocatable != before.whole_bytes)
    return "an expected size was not counted exactly";
  a.free(filled);
  a.expect(0);
  if (a.usage().whole_bytes > before.whole_bytes)
    return "more is free after a free than before";
  return std::nullopt;
}

/// The extents that `choose` names make one request fit, and fewer of them would not. `held` keeps the live extents.
std::optional<std::string> probe_choice(allocator& a, std::vector<extent>& held, std::mt19937_64& random) {
  for (int round = 0; round < 50 && !held.empty(); ++round) {
    std::shuffle(held.begin(), held.end(), random);
    uint64_t largest = a.usage().largest_free_run;
    uint64_t size = 1 + random() % a.largest_possible();
    auto before = a.usage();
    auto chosen = a.choose({&size, 1}, held);
    if (a.usage().largest_free_run != largest || a.usage().free_runs != before.free_runs ||
        a.usage().free_bytes != before.free_bytes)
      return "a choice changed something";
    if (!chosen)
      return "everything may leave, and that is not enough";
    if (chosen->empty() != (largest >= a.physical_size(size)))
      return "something was chosen for a request that fits, or nothing for one that does not";
    if (chosen->empty())
      continue;
    if (a.choose({&size, 1}, {}))
      return "a request that does not fit was said to";
    std::vector<extent> left;
    for (size_t i = 0; i < held.size(); ++i) {
      bool leaves = std::find(chosen->begin(), chosen->end(), i) != chosen->end();
      if (leaves)
        a.free({&held[i], 1});
      else
        left.push_back(held[i]);
      if (leaves && i != chosen->back() && a.usage().largest_free_run >= a.physical_size(size))
        return "more was chosen than is needed";
    }
    held = std::move(left);
    auto taken = a.allocate({&size, 1});
    if (!taken)
      return "what was chosen is not enough";
    held.push_back(taken->front());
  }
  return std::nullopt;
}

/// The extents that `choose` names for a batch are enough for it.
std::optional<std::string> probe_batch_choice(allocator& a, std::vector<extent>& held,
                                              std::mt19937_64& random) {
  for (int round = 0; round < 50 && !held.empty(); ++round) {
    std::shuffle(held.begin(), held.end(), random);
    std::vector<uint64_t> sizes(2 + random() % 4);
    for (auto& size : sizes)
      size = 1 + random() % (a.largest_possible() / 8 + 1);
    auto chosen = a.choose(sizes, held);
    std::vector<extent> left, back;
    for (size_t i = 0; i < held.size(); ++i)
      (chosen && std::find(chosen->begin(), chosen->end(), i) != chosen->end() ? back : left)
          .push_back(held[i]);
    a.free(back);
    held = std::move(left);
    auto taken = a.allocate(sizes);
    if (chosen && !taken)
      return "what was chosen for a batch is not enough";
    if (taken)
      held.insert(held.end(), taken->begin(), taken->end());
  }
  return std::nullopt;
}

/// An empty arena grows, and loses whole segments.
std::optional<std::string> probe_segments(allocator& a, const allocator_options& o, std::mt19937_64& random) {
  uint64_t segment =
      o.boundary_bytes != 0 ? o.boundary_bytes : o.capacity_bytes / o.alignment_bytes / 2 * o.alignment_bytes;
  if (a.grow(0) || a.grow(o.alignment_bytes + 1) || a.retire({0, 0}) || a.retire({1, segment}) ||
      a.retire({0, o.capacity_bytes + segment * 4}))
    return "an arena changed its size by a broken number of bytes";
  if (segment > o.capacity_bytes)
    return std::nullopt; // growing by segments of that size would take all day
  uint64_t before = a.usage().capacity_bytes;
  uint64_t end = (o.capacity_bytes + segment - 1) / segment * segment + segment;
  if (!a.grow(end - o.capacity_bytes) || a.usage().capacity_bytes <= before)
    return "an arena did not grow";
  std::vector<extent> held;
  for (uint64_t size = 1 + a.largest_possible() / 20;;) {
    auto taken = a.allocate({&size, 1});
    if (!taken)
      break;
    held.push_back(taken->front());
  }
  for (uint64_t offset = 0; offset + segment < end; offset += segment) {
    extent range{offset, segment};
    if (!a.retire(range) || a.retire(range))
      return "a segment cannot be retired once";
    std::shuffle(held.begin(), held.end(), random);
    std::vector<extent> left;
    for (auto& e : held) {
      uint64_t used = a.used_in(range);
      a.free({&e, 1});
      bool inside = e.offset < offset + segment && offset < e.offset + e.size;
      if (inside != (a.used_in(range) < used))
        return "what is used of a retired segment is miscounted";
    }
    held.clear();
    if (a.used_in(range) != 0)
      return "a retired segment whose objects were freed is still in use";
    auto usage = a.usage();
    if (usage.used_bytes != 0 || usage.free_bytes != usage.capacity_bytes)
      return "the capacity is wrong after a segment went";
    uint64_t size = 1 + a.largest_possible() / 20;
    while (auto taken = a.allocate({&size, 1})) {
      held.push_back(taken->front());
      if (taken->front().offset < offset + segment)
        return "an object was put into a retired segment";
    }
    if (held.empty())
      return "an arena that lost a segment holds nothing";
  }
  a.free(held);
  return std::nullopt;
}

} // namespace

std::optional<std::string> broken_promise(const allocator_maker& make, const allocator_options& options,
                                          uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  auto subject = make(), twin = make();
  naive_arena model;
  std::vector<extent> held;
  for (int step = 0; step < steps; ++step) {
    if (random() % 5 < 3) {
      uint64_t limit = random() % 4 == 0 ? subject->largest_possible() : subject->largest_possible() / 16 + 1;
      std::vector<uint64_t> sizes(random() % 6);
      bool equal = random() % 2 == 0;
      for (auto& size : sizes)
        size = equal && &size != sizes.data() ? sizes[0] : 1 + random() % limit;
      auto before = subject->usage();
      auto taken = subject->allocate(sizes), twins = twin->allocate(sizes);
      if (taken.has_value() != twins.has_value() || (taken && *taken != *twins))
        return "the same calls gave different extents";
      if (!taken) {
        auto after = subject->usage();
        if (taken.error().code != errc::no_space || after.used_bytes != before.used_bytes ||
            after.largest_free_run != before.largest_free_run || after.free_runs != before.free_runs)
          return "a batch that failed left a trace";
        if (sizes.size() == 1 && subject->physical_size(sizes[0]) <= before.largest_free_run)
          return "a request that fits was refused";
        continue;
      }
      if (taken->size() != sizes.size())
        return "not one extent for each size";
      for (size_t i = 0; i < sizes.size(); ++i) {
        if ((*taken)[i].size != subject->physical_size(sizes[i]))
          return "an extent differs from physical_size";
        if (auto broken = model.add((*taken)[i], sizes[i], options))
          return broken;
        held.push_back((*taken)[i]);
      }
    } else {
      std::vector<extent> back;
      for (size_t n = random() % 8; n > 0 && !held.empty(); --n) {
        std::swap(held[random() % held.size()], held.back());
        model.live.erase(held.back().offset);
        back.push_back(held.back());
        held.pop_back();
      }
      subject->free(back);
      twin->free(back);
    }
    if (auto broken = model.compare(subject->usage()))
      return broken;
    if (step % 8 == 0)
      if (auto broken = probe_largest(*subject); broken || (broken = probe_largest(*twin)))
        return broken;
  }
  auto heir = make();
  if (auto broken = probe_adoption(*heir, model, subject->usage()))
    return broken;
  if (auto broken = probe_fragmentation(*heir, model))
    return broken;
  if (auto broken = probe_choice(*subject, held, random))
    return broken;
  if (auto broken = probe_batch_choice(*subject, held, random))
    return broken;
  subject->free(held);
  if (subject->usage().free_bytes != subject->usage().capacity_bytes ||
      subject->usage().largest_free_run != subject->largest_possible())
    return "an arena that was emptied is not whole";
  return probe_segments(*subject, options, random);
}

} // namespace terrace::test
