// Requests that wait until a counter in their client's memory reaches a value.
//
//   waits.add({counter, 7, memory, context, then});
//   for (auto& each : waits.take_reached()) each.then({});       // the client has rung
//   for (auto& each : waits.take_ended()) each.then(why);        // a request was cancelled, or its deadline is over
//
// Pure. Used by one thread at a time.
#pragma once

#include "base/reached.hpp"
#include "base/request_context.hpp"
#include "memory/client_mapping.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
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

inline result<client_counter> client_counter::in(std::shared_ptr<const client_region> region,
                                                 uint64_t offset) {
  if (region->device())
    return fail(errc::bad_request, "expected a counter in memory of the host, got a region in device memory");
  if (offset % sizeof(uint32_t) != 0 || region->size() < sizeof(uint32_t) ||
      offset > region->size() - sizeof(uint32_t))
    return fail(errc::bad_request, "expected a counter at a multiple of 4 inside the region of " +
                                       std::to_string(region->size()) + " bytes, got offset " +
                                       std::to_string(offset));
  if (!region->mapped())
    return fail(errc::bad_request,
                "expected a counter in a region that is mapped: " + region->why_not_mapped());
  return client_counter(std::move(region), offset);
}

inline bool client_counter::has(uint32_t value) const {
  auto* word = reinterpret_cast<uint32_t*>(region_->data() + offset_);
  return reached(std::atomic_ref(*word).load(std::memory_order_acquire), value);
}

template <class F>
std::vector<counter_waits::wait> counter_waits::take_if(F&& wanted) {
  auto taken =
      std::stable_partition(waits_.begin(), waits_.end(), [&](const wait& each) { return !wanted(each); });
  std::vector<wait> out(std::make_move_iterator(taken), std::make_move_iterator(waits_.end()));
  waits_.erase(taken, waits_.end());
  return out;
}

inline std::vector<counter_waits::wait> counter_waits::take_all() { return std::exchange(waits_, {}); }

inline std::vector<counter_waits::wait> counter_waits::take_reached() {
  return take_if([](const wait& each) { return each.counter.has(each.value); });
}

inline std::vector<counter_waits::wait> counter_waits::take_ended() {
  return take_if([](const wait& each) { return !each.context->live(); });
}

inline std::vector<counter_waits::wait> counter_waits::take_counted_in(const client_region& gone) {
  return take_if([&gone](const wait& each) { return each.counter.region().get() == &gone; });
}

inline std::vector<counter_waits::wait> counter_waits::take_for(const device_memory& gone) {
  return take_if([&gone](const wait& each) { return each.memory.get() == &gone; });
}

} // namespace terrace
