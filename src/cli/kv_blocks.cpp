#include "cli/kv_blocks.hpp"

#include "base/tier_properties.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace terrace::cli {

namespace {

constexpr uint8_t bit_of(tier_kind tier) { return static_cast<uint8_t>(1U << static_cast<unsigned>(tier)); }

} // namespace

size_t kv_blocks::hash_of_name::operator()(const chunk_name& name) const {
  uint64_t first = 0; // digests are evenly distributed
  std::memcpy(&first, name.chunk.bytes.data(), sizeof first);
  return first ^ name.space;
}

uint8_t kv_blocks::tiers_of(const chunk_parts& chunk, uint32_t chunk_objects) {
  if (chunk.objects.size() < chunk_objects)
    return 0;
  uint8_t all = 0xff, slowest = 0;
  for (const auto& [object, tiers] : chunk.objects) {
    all &= tiers;
    auto fastest = static_cast<uint8_t>(1U << std::countr_zero(tiers));
    slowest = std::max(slowest, fastest);
  }
  return all != 0 ? all : slowest;
}

void kv_blocks::take(const client::event& event, std::vector<block_change>& changes) {
  if (event.chunk_objects == 0 || event.tier > all_tiers.back())
    return;
  bool stored = event.what == client::event_kind::admit;
  if (event.chunk_objects == 1) {
    changes.push_back({stored, event.tier, event.chunk});
    return;
  }
  auto at = chunks_.try_emplace({event.space, event.chunk}).first;
  chunk_parts& chunk = at->second;
  uint32_t object = static_cast<uint32_t>(event.pool) << 16 | event.rank;
  auto place = std::lower_bound(chunk.objects.begin(), chunk.objects.end(), std::pair(object, uint8_t{0}));
  if (place == chunk.objects.end() || place->first != object)
    place = chunk.objects.insert(place, {object, uint8_t{0}});
  place->second =
      static_cast<uint8_t>(stored ? place->second | bit_of(event.tier) : place->second & ~bit_of(event.tier));
  if (place->second == 0)
    chunk.objects.erase(place);
  uint8_t now = tiers_of(chunk, event.chunk_objects);
  uint8_t before = std::exchange(chunk.told, now);
  for (tier_kind tier : all_tiers)
    if ((now & ~before & bit_of(tier)) != 0)
      changes.push_back({true, tier, event.chunk});
  for (tier_kind tier : all_tiers)
    if ((before & ~now & bit_of(tier)) != 0)
      changes.push_back({false, tier, event.chunk});
  if (chunk.objects.empty())
    chunks_.erase(at);
}

} // namespace terrace::cli
