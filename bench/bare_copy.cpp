#include "bench/bare_copy.hpp"

#include "base/large_pages.hpp"
#include "bench/harness.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace terrace::bench {

double seconds_to_copy(const copy_plan& what, std::span<uint8_t> to, std::span<const uint8_t> from) {
  std::atomic<uint64_t> next = 0;
  const uint64_t call = what.call_bytes != 0 ? what.call_bytes : what.piece_bytes;
  auto work = [&] {
    for (uint64_t at; (at = next.fetch_add(what.piece_bytes)) < what.total_bytes;) {
      uint8_t* target = to.data() + at % to.size();
      if (what.large_pages)
        make_large_pages(reinterpret_cast<std::byte*>(target), what.piece_bytes);
      for (uint64_t done = 0; done < what.piece_bytes; done += call)
        std::memcpy(target + done, from.data() + at % from.size() + done,
                    std::min(call, what.piece_bytes - done));
    }
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
