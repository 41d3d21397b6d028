#include "tier/space/eviction_round.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace terrace {

namespace {
/// Victims that are not contiguous may not be enough; the policy is then asked for this many times the bytes.
constexpr uint64_t asked_growth = 4;
} // namespace

void eviction_round::begin(uint64_t missing, uint64_t asked) {
  assert(stage_ == stage::idle);
  stage_ = stage::asked;
  failure_.reset();
  missing_ = missing;
  asked_ = asked;
}

void eviction_round::ask_for(std::vector<room_seeker> seekers, std::unique_ptr<allocator> space) {
  assert(!seekers.empty() && space);
  uint64_t needed = 0;
  for (const room_seeker& one : seekers)
    for (uint64_t size : one.sizes)
      needed += space->physical_size(size);
  uint64_t free = space->usage().free_bytes;
  inference_ = seekers.front().context ? seekers.front().context->inference : 0;
  tenant_ = seekers.front().tenant;
  seekers_ = std::move(seekers);
  space_ = std::move(space);
  uint64_t missing = std::max(needed, free) - free;
  // Free bytes may be in runs that are too short for all of these: with several requests, victims are
  // requested as if nothing were free.
  begin(missing, seekers_.size() > 1 || missing == 0 ? needed : missing);
}

void eviction_round::ask_ahead(uint64_t bytes) {
  seekers_.clear();
  inference_ = 0;
  tenant_ = {};
  begin(bytes, bytes);
}

void eviction_round::ask_own(tenant_id tenant, uint64_t missing, uint64_t wanted, uint64_t inference) {
  assert(!space_ && missing != 0 && wanted >= missing);
  seekers_.clear();
  tenant_ = tenant;
  own_ = true;
  wanted_ = wanted;
  inference_ = inference;
  begin(missing, wanted);
}

void eviction_round::retry() {
  assert(failure_);
  failure_.reset();
  stage_ = stage::asked;
}

victim_request eviction_round::question(tier_kind tier) {
  assert(stage_ == stage::asked);
  more_evictable_ = false;
  return {tier, asked_, inference_};
}

void eviction_round::offer(victim_answer named) {
  assert(stage_ == stage::asked);
  named_ = std::move(named);
  stage_ = stage::offered;
}

std::optional<std::vector<size_t>> eviction_round::choose_for(const std::vector<room_seeker>& seekers,
                                                              const std::vector<extent>& candidates) {
  std::vector<uint64_t> sizes;
  for (const room_seeker& one : seekers)
    sizes.insert(sizes.end(), one.sizes.begin(), one.sizes.end());
  auto chosen = space_->choose(sizes, candidates);
  if (!chosen && seekers.size() > 1)
    chosen = space_->choose(seekers.front().sizes, candidates);
  return chosen;
}

std::vector<room_seeker> eviction_round::waiting() const {
  auto waiting = seekers_;
  std::erase_if(waiting, [](const room_seeker& one) { return one.context && !one.context->live(); });
  return waiting;
}

void eviction_round::choose(const residency& objects) {
  assert(stage_ == stage::offered);
  if (own_) {
    choose_own(objects);
    return;
  }
  auto may_leave = objects.departures().offered(named_.victims);
  if (ahead() || may_leave.extents.empty()) { // held objects are refused, and the policy is notified
    victims_ = named_.victims;
    stage_ = stage::evicting;
    return;
  }
  auto waiting = this->waiting();
  if (waiting.empty()) {
    stage_ = stage::idle;
    return;
  }
  auto chosen = choose_for(waiting, may_leave.extents);
  if (chosen && chosen->empty()) { // it fits now
    stage_ = stage::idle;
  } else if (chosen) {
    for (size_t& i : *chosen)
      i = may_leave.victims[i];
    victims_ = with_descendants(named_, *chosen);
    stage_ = stage::evicting;
  } else if (named_.bytes >= asked_) {
    asked_ *= asked_growth;
    stage_ = stage::asked;
  } else if (more_evictable_) {
    stage_ = stage::asked;
  } else { // all candidates are not enough, so none is evicted
    fail(waiting.front().number, objects.describe_holders());
  }
}

/// Chooses in the order of the policy, which names the end of a chain before its beginning, so the rest of a
/// chain is still a chain.
void eviction_round::choose_own(const residency& objects) {
  auto may_leave = objects.departures().offered(named_.victims);
  uint64_t bytes = 0;
  victims_.clear();
  for (size_t i = 0; i < may_leave.victims.size() && bytes < wanted_; ++i) {
    victims_.push_back(named_.victims[may_leave.victims[i]]);
    bytes += may_leave.extents[i].size;
  }
  bool all_named = named_.bytes < asked_ && !more_evictable_;
  if (bytes >= wanted_ || (all_named && bytes >= missing_)) {
    stage_ = stage::evicting;
  } else if (all_named) {
    victims_.clear();
    fail(0, objects.describe_holders());
  } else {
    stage_ = stage::asked;
    asked_ *= named_.bytes >= asked_ ? asked_growth : 1;
  }
}

bool eviction_round::ends_without() {
  assert(stage_ == stage::evicting);
  if (ahead())
    return false;
  auto now = waiting();
  if (!now.empty()) {
    auto chosen = choose_for(now, {});
    if (!chosen || !chosen->empty())
      return false;
  }
  victims_.clear();
  stage_ = stage::idle;
  return true;
}

object_departures::eviction eviction_round::evict(residency& objects, const std::vector<object_id>* demoted) {
  assert(stage_ == stage::evicting);
  auto victims = std::exchange(victims_, {});
  auto evicted = demoted != nullptr ? objects.departures().evict_demoted(victims, *demoted)
                                    : objects.departures().evict(victims);
  stage_ = stage::idle;
  if (!evicted.freed.empty()) {
    if (!put_back(evicted.freed))
      freed_ = evicted.freed;
  } else if (evicted.refused != 0 || more_evictable_) {
    // The victims were leased meanwhile, or the first candidate came after the request: the policy is notified first,
    // and then names others.
    stage_ = stage::asked;
  } else {
    fail(0, objects.describe_holders());
  }
  return evicted;
}

void eviction_round::give_up(std::string why) { fail(0, {std::move(why), 0, 0}); }

void eviction_round::fail(uint64_t number, residency::holders holders) {
  stage_ = stage::idle;
  failure_ = failure{number, std::move(holders)};
}

bool eviction_round::put_back(const std::vector<extent>& extents) {
  if (!space_)
    return false;
  space_->free(extents);
  return true;
}

void eviction_round::more_evictable() {
  more_evictable_ = true;
  failure_.reset();
}

std::vector<entry_key> with_descendants(const victim_answer& named, const std::vector<size_t>& chosen) {
  std::vector<bool> leaves(named.victims.size());
  for (size_t i : chosen)
    leaves[i] = true;
  std::unordered_map<entry_key, size_t> index;
  for (size_t i = named.victims.size(); i-- > 0;) { // an ancestor is proposed after its descendants
    if (i < named.above.size() && !named.above[i].empty())
      if (auto above = index.find(named.above[i]); above != index.end() && leaves[above->second])
        leaves[i] = true;
    index.emplace(named.victims[i], i);
  }
  std::vector<entry_key> all;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i])
      all.push_back(named.victims[i]);
  return all;
}

} // namespace terrace
