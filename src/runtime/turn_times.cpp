#include "runtime/turn_times.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace terrace::runtime {

turn_times::kind& turn_times::of(const char* name) {
  for (size_t i = 0; i + 1 < kinds_max; ++i) {
    const char* known = kinds_[i].name.load(std::memory_order_relaxed);
    if (known == name)
      return kinds_[i];
    if (known == nullptr) {
      kinds_[i].name.store(name, std::memory_order_release);
      return kinds_[i];
    }
  }
  kinds_.back().name.store("other", std::memory_order_release);
  return kinds_.back();
}

void turn_times::add(const char* name, int64_t duration_ns) {
  auto ns = static_cast<uint64_t>(std::max<int64_t>(duration_ns, 0));
  kind& one = of(name);
  size_t bucket = 0; // most turns are short
  while (bucket < bounds_ns.size() && ns > bounds_ns[bucket])
    ++bucket;
  one.turns[bucket].add();
  one.sum_ns.add(ns);
  if (ns > one.longest_ns.get())
    one.longest_ns.set(ns);
}

int64_t turn_limit::processor_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void turn_limit::exceeded(const char* actor, int64_t took_ns) const {
  std::fprintf(stderr, "a turn of the actor %s took %lld us of processor time: expected at most %lld\n",
               actor, static_cast<long long>(took_ns / 1000), static_cast<long long>(limit_ns_ / 1000));
  std::abort();
}

} // namespace terrace::runtime
