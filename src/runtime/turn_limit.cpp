#include "runtime/turn_limit.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace terrace::runtime {

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
