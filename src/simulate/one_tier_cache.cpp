#include "simulate/one_tier_cache.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::simulate {

namespace {
constexpr int window_attempts_max = 16; // the store actor's
}

one_tier_cache::one_tier_cache(const workload& of, std::unique_ptr<eviction_policy> policy,
                               const cache_shape& shape)
    : of_(of), shape_(shape), order_(of, std::move(policy), shape.object_bytes),
      resident_(of.distinct_chunks()) {
  assert(shape.window_chunks > 0 && shape.batch_chunks > 0);
}

void one_tier_cache::serve(const request& next) {
  auto chain = of_.chain(next);
  uint64_t now = next.facts.at_ns;
  ++counts_.requests;
  counts_.accesses += chain.size();
  size_t done = look_up(chain, now);
  counts_.hits += done;
  // The lease ends before the stores begin: who waits for memory holds none.
  while (done < chain.size()) {
    auto batch = chain.subspan(done, std::min<size_t>(shape_.batch_chunks, chain.size() - done));
    for (size_t at = 0; at < batch.size(); at += shape_.window_chunks) {
      auto window = batch.subspan(at, std::min<size_t>(shape_.window_chunks, batch.size() - at));
      if (!store(window, now)) {
        counts_.refused += chain.size() - done - at;
        return;
      }
    }
    done += batch.size();
  }
}

/// Everything that is there is noted as used, last chunk first, behind a hole too; only the run before it hits.
size_t one_tier_cache::look_up(std::span<const chunk> chain, uint64_t now_ns) {
  size_t run = 0;
  while (run < chain.size() && resident_[chain[run]])
    ++run;
  for (size_t i = chain.size(); i-- > 0;) {
    if (!resident_[chain[i]])
      continue;
    counts_.behind_hole += i > run;
    order_.hit(chain[i], now_ns);
  }
  return run;
}

/// All or nothing. What is there already (behind a hole) is noted as used, once; if room for the others cost it its
/// place, it is stored in another round.
bool one_tier_cache::store(std::span<const chunk> window, uint64_t now_ns) {
  auto missing = [&] {
    return std::count_if(window.begin(), window.end(), [&](chunk c) { return !resident_[c]; });
  };
  for (int round = 0; round < window_attempts_max; ++round) {
    auto wanted = static_cast<size_t>(missing());
    if (wanted == 0 && round > 0)
      return true;
    std::vector<bool> fill(window.size());
    std::transform(window.begin(), window.end(), fill.begin(), [&](chunk c) { return !resident_[c]; });
    if (!make_room(wanted, now_ns))
      return false;
    if (round == 0)
      for (size_t i = window.size(); i-- > 0;)
        if (resident_[window[i]])
          order_.hit(window[i], now_ns);
    for (size_t i = window.size(); i-- > 0;) {
      if (!fill[i])
        continue;
      order_.insert(window[i], now_ns);
      resident_[window[i]] = true;
      ++used_;
      ++counts_.inserted;
    }
  }
  return missing() == 0;
}

bool one_tier_cache::make_room(uint64_t wanted, uint64_t now_ns) {
  if (wanted > shape_.capacity_chunks)
    return false;
  while (used_ + wanted > shape_.capacity_chunks) {
    auto leaving = order_.victims((used_ + wanted - shape_.capacity_chunks) * shape_.object_bytes, now_ns);
    if (leaving.empty())
      return false;
    for (chunk c : leaving) {
      order_.erase(c);
      resident_[c] = false;
      --used_;
      ++counts_.evicted;
    }
  }
  return true;
}

} // namespace terrace::simulate
