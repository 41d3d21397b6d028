#include "simulate/one_tier_cache.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::simulate {

one_tier_cache::one_tier_cache(const workload& of, const tracker_options& policy, const cache_shape& shape)
    : of_(of), shape_(shape), tracker_(of, policy),
      host_(tracker_, host_tier, shape.capacity_chunks, of.distinct_chunks()) {
  assert(shape.window_chunks > 0 && shape.batch_chunks > 0);
}

void one_tier_cache::serve(const request& next) {
  auto chain = of_.chain(next);
  if (chain.empty())
    return; // nothing that could be shared: a client asks for nothing
  tracker_.begin(next);
  size_t hits = look_up(chain);
  counts_.accesses += chain.size();
  counts_.hits += hits;
  // The lease has ended here: who waits for memory holds none. What the request used goes last all the same.
  volume_rest(chain.subspan(hits));
  counts_.evicted = host_.evicted();
  tracker_.finish();
}

size_t one_tier_cache::look_up(std::span<const chunk> chain) {
  size_t run = 0;
  while (run < chain.size() && host_.holds(chain[run]))
    ++run;
  for (size_t i = run; i < chain.size(); ++i)
    counts_.behind_hole += host_.holds(chain[i]);
  return run;
}

void one_tier_cache::volume_rest(std::span<const chunk> rest) {
  while (!rest.empty()) {
    auto batch = rest.first(std::min<size_t>(shape_.batch_chunks, rest.size()));
    for (size_t at = 0; at < batch.size(); at += shape_.window_chunks)
      if (!store(batch.subspan(at, std::min<size_t>(shape_.window_chunks, batch.size() - at)))) {
        counts_.no_room += rest.size() - at;
        return;
      }
    rest = rest.subspan(batch.size());
  }
}

/// All of the window that is not there, or nothing.
bool one_tier_cache::store(std::span<const chunk> window) {
  auto missing = std::count_if(window.begin(), window.end(), [&](chunk c) { return !host_.holds(c); });
  if (!host_.make_room(static_cast<uint64_t>(missing)))
    return false;
  for (size_t i = window.size(); i-- > 0;) {
    if (host_.holds(window[i]))
      continue;
    host_.insert(window[i]);
    ++counts_.stored;
  }
  return true;
}

} // namespace terrace::simulate
