#include "cli/simulate/bounds.hpp"

#include <algorithm>
#include <queue>

namespace terrace::simulate {

namespace {
constexpr uint32_t never = ~uint32_t{0};
}

uint64_t infinite_cache_hits(const workload& trace) {
  // Chunks are numbered by first use, so the chunks seen before have smaller numbers; in every chain new
  // chunks follow known ones.
  uint64_t hits = 0;
  chunk seen = 0;
  for (chunk of_access : trace.accesses())
    if (of_access < seen)
      ++hits;
    else
      seen = of_access + 1;
  return hits;
}

belady_bound::belady_bound(const workload& trace) : of_(trace), next_use_(trace.accesses().size(), never) {
  std::vector<uint32_t> next(trace.distinct_chunks(), never);
  auto requests = trace.requests();
  for (size_t i = requests.size(); i-- > 0;) {
    auto chain = trace.chain(requests[i]);
    for (size_t depth = 0; depth < chain.size(); ++depth) {
      next_use_[requests[i].first + depth] = next[chain[depth]];
      next[chain[depth]] = static_cast<uint32_t>(i);
    }
  }
}

uint64_t belady_bound::hits(uint64_t capacity) const {
  // The chunks whose next use is request r are a run of r's chain, and the cached ones are its shallower
  // part. So the cache is one number per request, and that number is the request's hits when it arrives.
  auto requests = of_.requests();
  std::vector<uint32_t> held(requests.size(), 0);
  std::priority_queue<uint32_t> latest; // requests with cached chunks; past requests sink to the bottom
  uint64_t used = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    hits += held[i];
    used -= held[i];
    held[i] = 0;
    for (size_t access = requests[i].first; access < requests[i].first + requests[i].chunks; ++access) {
      uint32_t next = next_use_[access];
      if (next == never)
        break; // so are all after it
      if (held[next]++ == 0)
        latest.push(next);
      ++used;
    }
    while (used > capacity) {
      uint32_t& last = held[latest.top()];
      uint64_t leaving = std::min<uint64_t>(last, used - capacity);
      last -= static_cast<uint32_t>(leaving);
      used -= leaving;
      if (last == 0)
        latest.pop();
    }
  }
  return hits;
}

} // namespace terrace::simulate
