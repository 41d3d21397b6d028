// How far a load or a prefetch has come, for a client that does not wait for its end.
#pragma once

#include "base/error.hpp"
#include "memory/client_mapping.hpp"
#include "memory/device_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace terrace {

/// Counters of 32 bits in a client's region, each with the number of leading chunks that have arrived. The client sets
/// them to 0 before its request, and waits for them by futex. It may change them at any time: only it uses them.
/// Threads: any, one at a time; `add` may wait for a page of the client, so it is called by copiers.
class arrival_counters {
 public:
  /// Errors: `bad_request`, if they are not inside the region, not aligned, or the region is not mapped; `denied`, if it is
  /// sealed against writing.
  static result<std::shared_ptr<const arrival_counters>>
  in(const std::shared_ptr<const client_region>& region, uint64_t offset, size_t count);

  size_t count() const { return count_; }

  /// Adds to `count` counters from number `first` on, and wakes whoever waits for one of them.
  void add(size_t first, size_t count, uint32_t chunks) const;

 private:
  arrival_counters(outside_memory memory, size_t count) : memory_(std::move(memory)), count_(count) {}

  outside_memory memory_; ///< begins with the first counter
  size_t count_;
};

/// For counters `first` to `first + count`: so many chunks have arrived.
struct arrival {
  std::shared_ptr<const arrival_counters> counters; ///< null: nobody wants to know
  size_t first = 0;
  size_t count = 0;
  uint32_t chunks = 0;

  void announce() const {
    if (counters && chunks != 0)
      counters->add(first, count, chunks);
  }
};

} // namespace terrace
