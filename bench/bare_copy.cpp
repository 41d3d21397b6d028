#include "bench/bare_copy.hpp"

#include "bench/harness.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace terrace::bench {

double seconds_to_copy(const copy_plan& what, std::span<uint8_t> to, std::span<const uint8_t> from) {
  std::atomic<uint64_t> next = 0;
  auto work = [&] {
    for (uint64_t at; (at = next.fetch_add(what.piece_bytes)) < what.total_bytes;)
      std::memcpy(to.data() + at % to.size(), from.data() + at % from.size(), what.piece_bytes);
  };
  return seconds_of([&] {
    std::vector<std::thread> others;
    for (size_t i = 1; i < what.threads; ++i)
      others.emplace_back(work);
    work();
    for (std::thread& each : others)
      each.join();
  });
}

size_t default_copiers() { return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 2, 8); }

} // namespace terrace::bench
