// Requests that wait until a counter in memory of their client has a value.
//
//   waits.add({counter, 7, memory, context, then});
//   for (auto& each : waits.take_reached()) each.then({});       // the client has rung
//   for (auto& each : waits.take_ended()) each.then(why);        // a request was cancelled, or its deadline is over
//
// Pure. Used by one thread at a time.
#pragma once

#include "memory/client_mapping.hpp"
#include "base/request_context.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace terrace {

/// 32 bits in a region of a client, which writes them at any time: a device of it, or a processor.
class client_counter {
 public:
  /// Errors: `bad_request`, if it is not aligned, not inside the region, or the region is not mapped memory of the host.
  static result<client_counter> in(std::shared_ptr<const client_region> region, uint64_t offset);

  /// As cuStreamWaitValue32 compares. What was written before the value is visible then.
  bool has(uint32_t value) const;
  const std::shared_ptr<const client_region>& region() const { return region_; }

 private:
  client_counter(std::shared_ptr<const client_region> region, uint64_t offset)
      : region_(std::move(region)), offset_(offset) {}

  std::shared_ptr<const client_region> region_;
  uint64_t offset_;
};

class counter_waits {
 public:
  struct wait {
    client_counter counter;
    uint32_t value = 0;
    device_memory_ptr memory; ///< that is accessed then
    context_ptr context;
    std::function<void(const error&)> then; ///< ok: it has the value
  };

  void add(wait one) { waits_.push_back(std::move(one)); }
  size_t size() const { return waits_.size(); }

  // They are no longer here, in the order in which they came.
  std::vector<wait> take_all();
  std::vector<wait> take_reached();
  std::vector<wait> take_ended();                               ///< whose requests have
  std::vector<wait> take_counted_in(const client_region& gone); ///< whose counter is in this region
  std::vector<wait> take_for(const device_memory& gone);        ///< whose memory is this

 private:
  template <class F>
  std::vector<wait> take_if(F&& wanted);

  std::vector<wait> waits_;
};

} // namespace terrace
