#include "transfer/arrival_counters.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <climits>
#include <string>

namespace terrace {

result<std::shared_ptr<const arrival_counters>>
arrival_counters::in(const std::shared_ptr<const client_region>& region, uint64_t offset, size_t count) {
  auto refuse = [](errc code, std::string text) { return tl::unexpected(error{code, std::move(text)}); };
  uint64_t bytes = count * sizeof(uint32_t);
  if (offset % sizeof(uint32_t) != 0)
    return refuse(errc::bad_request,
                  "expected the offset of arrivals to be a multiple of 4, got " + std::to_string(offset));
  if (bytes > region->size() || offset > region->size() - bytes)
    return refuse(errc::bad_request,
                  "expected " + std::to_string(count) + " counters of arrivals inside the region of " +
                      std::to_string(region->size()) + " bytes, got offset " + std::to_string(offset));
  if (!region->mapped())
    return refuse(errc::bad_request,
                  "expected arrivals in a region that is mapped: " + region->why_not_mapped());
  if (!region->writable())
    return refuse(errc::denied,
                  "the region of the arrivals is sealed against writing; register a writable one");
  outside_memory memory{region->data() + offset, -1, bytes, region};
  return std::shared_ptr<const arrival_counters>(new arrival_counters(std::move(memory), count));
}

void arrival_counters::add(size_t first, size_t count, uint32_t chunks) const {
  assert(first + count <= count_);
  auto* word = reinterpret_cast<uint32_t*>(memory_.data) + first;
  for (size_t i = 0; i < count; ++i, ++word) {
    // After the bytes of the chunks, which the client reads once it has seen the counter.
    std::atomic_ref(*word).fetch_add(chunks, std::memory_order_release);
    ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

} // namespace terrace
