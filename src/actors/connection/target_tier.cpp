#include "actors/connection/target_tier.hpp"

#include "base/tier_properties.hpp"

#include <algorithm>

namespace terrace::actors {

bool can_bring_to(client_request& request, tier_kind to) {
  const group_parts& group = request.client.group();
  auto refuse = [&](const std::string& why) {
    request.refuse({errc::unsupported, why});
    return false;
  };
  if (to == memory_tier)
    return !group.staging_only ||
           refuse(
               "host.staging_only is true: expected a load, since what is brought to host memory would not "
               "stay there");
  if (!faster_than_memory(to))
    return refuse("expected to 0 (GPU tier) or 1 (host memory), got " +
                  std::to_string(static_cast<unsigned>(to)));
  const tier_handle* tier = group.tier(to);
  if (tier == nullptr)
    return refuse("the trust group has no tier in memory of a GPU (gpu.tier_bytes)");
  if (!tier->reads()) {
    std::string reason = tier->degraded();
    return refuse("the GPU tier is not in service: " + (reason.empty() ? tier->notice() : reason));
  }
  return true;
}

uint64_t room_to_bring(const group_parts& group, tier_kind to) {
  if (to != memory_tier)
    return group.tier(to)->bytes; // nothing else needs it, and what has arrived is held until the end
  uint64_t size = group.memory->size();
  return (size - std::min(size, group.leases->bytes())) / 2;
}

} // namespace terrace::actors
