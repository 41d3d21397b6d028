#include "actors/gpu/daemon/device_tier.hpp"

namespace terrace::actors {

std::string device_tier_service::reason() const {
  std::lock_guard lock(mutex_);
  return why_;
}

std::string device_tier_service::notice() const {
  if (reads() || !reason().empty())
    return {};
  return "it begins when a client registers memory of its device";
}

bool device_tier_service::reaches(const device_memory& region) const {
  std::lock_guard lock(mutex_);
  return !refused_.contains(region_of(region).device().id());
}

void device_tier_service::refuses(const device_actor& device) {
  std::lock_guard lock(mutex_);
  refused_.insert(device.id());
}

void device_tier_service::serves() {
  {
    std::lock_guard lock(mutex_);
    refused_.clear(); // refusals of the previous arena
    why_.clear();
  }
  serves_.store(true, std::memory_order_release);
}

void device_tier_service::stops(std::string why) {
  serves_.store(false, std::memory_order_release);
  std::lock_guard lock(mutex_);
  why_ = std::move(why);
}

} // namespace terrace::actors
