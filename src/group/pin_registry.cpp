#include "group/pin_registry.hpp"

#include <algorithm>
#include <cassert>
#include <string>

namespace terrace {

result<lease_ptr> pin_registry::add(const lease_ptr& lease, const digest& prompt, uint64_t bytes_max) {
  name of{lease->space->id, prompt};
  auto known = pins_.find(of);
  uint64_t others = bytes_ - (known == pins_.end() ? 0 : known->second->bytes);
  if (lease->bytes > bytes_max - std::min(bytes_max, others))
    return fail(errc::no_space, "the prompt has " + std::to_string(lease->bytes) + " bytes, and pins hold " +
                                    std::to_string(others) + "; expected at most " +
                                    std::to_string(bytes_max) + " together (lease.pin_percent); unpin some");
  if (known == pins_.end() && pins_.size() >= pins_max)
    return fail(errc::busy,
                std::to_string(pins_.size()) + " prompts are pinned, as many as may be; unpin some");
  lease_ptr replaced = known == pins_.end() ? nullptr : take(known);
  bytes_ += lease->bytes;
  pins_.emplace(of, lease);
  assert(pins_.size() <= pins_max && bytes_ <= bytes_max);
  return replaced;
}

lease_ptr pin_registry::take(std::map<name, lease_ptr>::iterator at) {
  lease_ptr taken = std::move(at->second);
  pins_.erase(at);
  bytes_ -= taken->bytes;
  return taken;
}

lease_ptr pin_registry::remove(space_id space, const digest& prompt) {
  auto known = pins_.find({space, prompt});
  return known == pins_.end() ? nullptr : take(known);
}

bool pin_registry::has(const lease_id& id) const {
  return std::any_of(pins_.begin(), pins_.end(), [&](const auto& one) { return one.second->id == id; });
}

lease_ptr pin_registry::remove(const lease_id& id) {
  auto known =
      std::find_if(pins_.begin(), pins_.end(), [&](const auto& one) { return one.second->id == id; });
  return known == pins_.end() ? nullptr : take(known);
}

} // namespace terrace
