#include "policy/shadow_cache.hpp"

#include "base/window_refill.hpp"

#include <algorithm>

namespace terrace {

result<std::unique_ptr<shadow_cache>> shadow_cache::make(std::string_view policy, uint64_t capacity_bytes,
                                                         uint64_t seed) {
  std::unique_ptr<shadow_cache> made(new shadow_cache(capacity_bytes, seed));
  if (auto known = made->tracker_.set_policy(only_tier, policy); !known)
    return tl::unexpected(known.error());
  return made;
}

uint64_t shadow_cache::window_bytes(uint64_t capacity_bytes) {
  return std::min<uint64_t>(64ULL << 20, std::max<uint64_t>(capacity_bytes / 8, 1));
}

request_number shadow_cache::begin(std::span<const entry_info> chain, const request_hints& hints,
                                   policy_time now) {
  count(chain);
  keys_.clear();
  for (const entry_info& entry : chain)
    keys_.push_back(entry.key);
  request_number request = tracker_.begin_request(keys_, hints, now);
  store_missing(chain, request, now);
  return request;
}

void shadow_cache::end(request_number request, const request_outcome& outcome, policy_time now) {
  tracker_.end_request(request, outcome, now);
}

void shadow_cache::use(std::span<const entry_info> chain, policy_time now) {
  count(chain);
  for (size_t i = chain.size(); i-- > 0;)
    tracker_.hit(only_tier, chain[i].key, now);
  store_missing(chain, 0, now);
}

void shadow_cache::clear(const std::function<bool(entry_key)>& which) {
  for (const entry_info& entry : tracker_.list_residents(only_tier))
    if (which(entry.key)) {
      tracker_.erase(only_tier, entry.key);
      used_bytes_ -= entry.bytes;
    }
}

void shadow_cache::count(std::span<const entry_info> chain) {
  ++counts_.requests;
  // The objects of one chunk are adjacent: there are `step` of them, and each object's parent is `step`
  // places before it.
  auto child = std::find_if(chain.begin(), chain.end(),
                            [&](const entry_info& entry) { return entry.parent == chain[0].key; });
  const auto step = static_cast<size_t>(child - chain.begin());
  reached_.assign(chain.size(), false);
  for (size_t i = 0; i < chain.size(); ++i) {
    const entry_info& entry = chain[i];
    ++counts_.asked;
    counts_.asked_bytes += entry.bytes;
    bool behind =
        i < step ? entry.parent.empty() || tracker_.resident(only_tier, entry.parent) : reached_[i - step];
    reached_[i] = behind && tracker_.resident(only_tier, entry.key);
    if (!reached_[i])
      continue;
    ++counts_.hits;
    counts_.hit_bytes += entry.bytes;
  }
}

void shadow_cache::store_missing(std::span<const entry_info> chain, request_number request, policy_time now) {
  const uint64_t most = window_bytes(capacity_bytes_);
  auto missing = [&](const entry_info& entry) { return !tracker_.resident(only_tier, entry.key); };
  chain =
      chain.subspan(static_cast<size_t>(std::find_if(chain.begin(), chain.end(), missing) - chain.begin()));
  while (!chain.empty()) {
    uint64_t window = chain[0].bytes;
    size_t taken = 1;
    while (taken < chain.size() && window + chain[taken].bytes <= most)
      window += chain[taken++].bytes;
    auto part = chain.first(taken);
    chain = chain.subspan(taken);
    if (!store_window(part, request, now))
      return; // the rest of the chain has no room either
  }
}

bool shadow_cache::store_window(std::span<const entry_info> window, request_number request, policy_time now) {
  auto present = [&](const entry_info& entry) { return tracker_.resident(only_tier, entry.key); };
  size_t wanted = window.size();
  for (int round = 0; wanted != 0 && round <= refills_max; ++round) {
    uint64_t needed = 0;
    missing_.clear();
    for (const entry_info& entry : window)
      if (missing_.size() < wanted && !present(entry)) {
        needed += entry.bytes;
        missing_.push_back(entry);
      }
    if (!make_room(needed, request, now))
      return round != 0;
    for (size_t i = missing_.size(); i-- > 0;)
      if (!present(missing_[i])) { // a chain may contain an object twice
        tracker_.insert(only_tier, missing_[i], now, request);
        used_bytes_ += missing_[i].bytes;
      }
    there_.resize(window.size());
    std::transform(window.begin(), window.end(), there_.begin(), present);
    wanted = objects_to_refill(there_);
  }
  return true;
}

bool shadow_cache::make_room(uint64_t bytes, request_number request, policy_time now) {
  if (bytes > capacity_bytes_)
    return false;
  while (used_bytes_ + bytes > capacity_bytes_) {
    auto leaving =
        tracker_.victims(only_tier, {used_bytes_ + bytes - capacity_bytes_, request, request == 0}, now);
    if (leaving.empty())
      return false;
    for (const victim& each : leaving) {
      tracker_.erase(only_tier, each.key);
      used_bytes_ -= each.bytes;
      ++counts_.evicted;
    }
  }
  return true;
}

} // namespace terrace
