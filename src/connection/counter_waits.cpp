#include "connection/counter_waits.hpp"

#include "base/reached.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <utility>

namespace terrace {

result<client_counter> client_counter::in(std::shared_ptr<const client_region> region, uint64_t offset) {
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

bool client_counter::has(uint32_t value) const {
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

std::vector<counter_waits::wait> counter_waits::take_all() { return std::exchange(waits_, {}); }

std::vector<counter_waits::wait> counter_waits::take_reached() {
  return take_if([](const wait& each) { return each.counter.has(each.value); });
}

std::vector<counter_waits::wait> counter_waits::take_ended() {
  return take_if([](const wait& each) { return !each.context->live(); });
}

std::vector<counter_waits::wait> counter_waits::take_counted_in(const client_region& gone) {
  return take_if([&gone](const wait& each) { return each.counter.region().get() == &gone; });
}

std::vector<counter_waits::wait> counter_waits::take_for(const device_memory& gone) {
  return take_if([&gone](const wait& each) { return each.memory.get() == &gone; });
}

} // namespace terrace
