// Requests that wait until a counter in their client's memory reaches a value.
//
//   waits.add({counter, 7, memory, context, then});
//   for (auto& each : waits.take_reached()) each.then({});       // the client has rung
//   for (auto& each : waits.take_ended()) each.then(why);        // a request was cancelled, or its deadline is over
//
// Pure. Used by one thread at a time.
#pragma once

#include "base/request_context.hpp"
#include "memory/client_mapping.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace terrace {

/// 32 bits in a region of a client. The client's device or processor writes them at any time.
class client_counter {
 public:
  /// Errors: `bad_request` if the counter is not aligned or not inside the region, or if the region is not
  /// mapped host memory.
  static result<client_counter> in(std::shared_ptr<const client_region> region, uint64_t offset);

  /// Compares as cuStreamWaitValue32 does. If it returns true, everything written before the value is
  /// visible.
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
    device_memory_ptr memory; ///< memory that is accessed once the value is reached
    context_ptr context;
    std::function<void(const error&)> then; ///< called with ok when the counter has the value
  };

  void add(wait one) { waits_.push_back(std::move(one)); }
  size_t size() const { return waits_.size(); }

  // Removes and returns all waits, in the order in which they came.
  std::vector<wait> take_all();
  std::vector<wait> take_reached();
  std::vector<wait> take_ended();                               ///< waits whose requests have ended
  std::vector<wait> take_counted_in(const client_region& gone); ///< waits whose counter is in this region
  std::vector<wait> take_for(const device_memory& gone);        ///< waits that would access this memory

 private:
  template <class F>
  std::vector<wait> take_if(F&& wanted);

  std::vector<wait> waits_;
};

} // namespace terrace
