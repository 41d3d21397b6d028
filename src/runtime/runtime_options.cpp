#include "runtime/runtime_options.hpp"

#include <algorithm>

namespace terrace::runtime {

result<void> runtime_options::validate() const {
  std::string text;
  auto check = [&text](bool good, const char* name, uint64_t value, const char* expected) {
    if (good)
      return;
    if (!text.empty())
      text += "; ";
    text += std::string{"runtime."} + name + " is " + std::to_string(value) + ", expected " + expected;
  };
  check(workers <= 64, "workers", workers, "0 (automatic) to 64");
  check(transfer_workers <= 64 - std::min<size_t>(workers, 64), "transfer_workers", transfer_workers,
        "no more than 64 together with the workers");
  check(ring_entries >= 8 && ring_entries <= 32768, "ring_entries", ring_entries, "8 to 32768");
  check(max_throughput >= 1 && max_throughput <= 1000, "max_throughput", max_throughput, "1 to 1000");
  check(slice_us == 0 || (slice_us >= 100 && slice_us <= 100'000), "slice_us", slice_us,
        "0 (the kernel's) or 100 to 100000");
  check(busy_poll_us <= 1000, "busy_poll_us", busy_poll_us, "0 (off) to 1000");
  check(buffer_slots >= 1 && buffer_slots <= 16384, "buffer_slots", buffer_slots, "1 to 16384");
  if (!text.empty())
    return fail(errc::bad_request, std::move(text));
  return {};
}

size_t runtime_options::effective_workers(unsigned cores) const {
  if (workers != 0)
    return workers;
  return cores <= 4 ? 1 : std::min<size_t>(4, cores / 4);
}

} // namespace terrace::runtime
