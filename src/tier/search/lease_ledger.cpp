#include "tier/search/lease_ledger.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

namespace {

/// The number of places that are processed under the lock at a time, so that others need not wait for a lease
/// on a million objects.
constexpr size_t batch = 256;

template <class F>
void in_batches(std::span<const object_place> places, F&& f) {
  for (size_t begin = 0; begin < places.size(); begin += batch)
    f(places.subspan(begin, std::min(batch, places.size() - begin)));
}

} // namespace

/// A hold and its charge. The charge ends first, so charged objects are always held.
class lease_account::charged_hold {
 public:
  charged_hold(account_ptr account, hold_ptr held) : account_(std::move(account)), held_(std::move(held)) {}
  charged_hold(const charged_hold&) = delete;
  charged_hold& operator=(const charged_hold&) = delete;
  ~charged_hold() { account_->release(std::span(held_->places()).first(charged_), era_); }

  bool add_some(size_t places, claim* from) {
    auto rest = std::span(held_->places()).subspan(charged_);
    auto some = rest.first(std::min(rest.size(), places));
    if (charged_ == 0)
      era_ = account_->era();
    account_->add(some, era_, from);
    charged_ += some.size();
    for (const object_place& place : some)
      bytes_ += place.present() ? place.physical_bytes : 0;
    return some.size() < rest.size();
  }
  uint64_t bytes() const { return bytes_; }
  object_hold* held() const { return held_.get(); }

 private:
  account_ptr account_;
  hold_ptr held_;
  size_t charged_ = 0; ///< places that are charged
  uint64_t bytes_ = 0; ///< bytes of these
  uint32_t era_ = 0;   ///< in whose units they are counted
};

/// A hold of a tier below and its charge.
struct lease_account::charged_below {
  account_ptr account;
  tier_kind tier;
  uint64_t bytes;
  hold_ptr held;

  charged_below(account_ptr a, tier_kind of_tier, uint64_t charged, hold_ptr hold)
      : account(std::move(a)), tier(of_tier), bytes(charged), held(std::move(hold)) {
    account->below_[static_cast<size_t>(of_tier)] += bytes;
  }
  charged_below(const charged_below&) = delete;
  charged_below& operator=(const charged_below&) = delete;
  ~charged_below() { account->below_[static_cast<size_t>(tier)] -= bytes; }
};

lease_ledger::tally lease_ledger::now() const {
  std::lock_guard lock(mutex_);
  return {bytes_.load(std::memory_order_relaxed), changes_};
}

void lease_ledger::learn(uint64_t physical_bytes) {
  std::lock_guard lock(mutex_);
  if (!units_.expect(physical_bytes))
    return;
  smallest_ = std::min(smallest_.load(), physical_bytes);
  largest_ = std::max(largest_.load(), physical_bytes);
}

account_ptr lease_ledger::open() { return std::make_shared<lease_account>(shared_from_this()); }

uint64_t lease_account::room(uint64_t limit) const {
  uint64_t all = group_->bytes() + group_->claimed_;
  uint64_t others = all - std::min(all, bytes_);
  uint64_t free = limit - std::min(limit, others);
  uint64_t most = free * group_->bounds_.connection_percent / 100;
  return most - std::min(most, bytes_);
}

void lease_account::claim::spend(uint64_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  of_->bytes_ -= bytes;
  of_->group_->claimed_ -= bytes;
}

lease_account::claim::~claim() {
  if (!of_ || bytes_ == 0)
    return;
  std::lock_guard lock(of_->group_->mutex_);
  of_->bytes_ -= bytes_;
  of_->group_->claimed_ -= bytes_;
  ++of_->group_->changes_;
}

lease_account::claim lease_account::claim_for(std::span<const object_place> places, uint64_t limit) {
  uint64_t wanted = 0;
  leased_units::survey units{limit};
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    for (const object_place& place : some)
      if (place.present() && !group_->accounts_.contains(place.id)) {
        wanted += place.physical_bytes;
        group_->units_.look_at(place, units);
      }
  });
  claim part = claim_for(units.bytes, limit);
  part.complete_ = part.complete_ && units.bytes == wanted;
  return part;
}

uint32_t lease_account::era() const {
  std::lock_guard lock(group_->mutex_);
  return group_->units_.era();
}

lease_account::claim lease_account::claim_for(uint64_t bytes, uint64_t limit) {
  std::lock_guard lock(group_->mutex_);
  uint64_t granted = std::min(bytes, room(limit));
  bytes_ += granted;
  group_->claimed_ += granted;
  ++group_->changes_;
  return {shared_from_this(), granted, granted == bytes};
}

uint64_t lease_account::bytes() const {
  std::lock_guard lock(group_->mutex_);
  return bytes_;
}

std::vector<bool> lease_ledger::leased(std::span<const object_place> places, leased_units::survey& so_far) {
  std::vector<bool> answer;
  answer.reserve(places.size());
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(mutex_);
    for (const object_place& place : some) {
      answer.push_back(place.present() && accounts_.contains(place.id));
      if (place.present() && !answer.back())
        units_.look_at(place, so_far);
    }
  });
  return answer;
}

uint64_t lease_account::add(const object_place& place) {
  if (leases_.add(place.id) != 1)
    return 0;
  bytes_ += place.physical_bytes;
  if (group_->accounts_.add(place.id) != 1)
    return 0;
  group_->bytes_.fetch_add(place.physical_bytes, std::memory_order_relaxed);
  return place.physical_bytes;
}

void lease_account::add(std::span<const object_place> places, uint32_t era, claim* from) {
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    ++group_->changes_;
    uint64_t more = 0;
    leased_units& units = group_->units_;
    const bool counts = era != 0 && units.era() == era;
    for (const object_place& place : some) {
      if (!place.present())
        continue;
      more += add(place);
      if (counts)
        units.add(place);
    }
    if (from != nullptr)
      from->spend(more);
  });
}

hold_ptr lease_account::charge(hold_ptr held) {
  gradual_charge all(shared_from_this(), std::move(held));
  (void) all.add_some(SIZE_MAX);
  return all.result();
}

lease_account::gradual_charge::gradual_charge(account_ptr account, hold_ptr held)
    : both_(make(std::move(account), std::move(held))) {}

std::shared_ptr<lease_account::charged_hold> lease_account::gradual_charge::make(account_ptr account,
                                                                                 hold_ptr held) {
  deleted_by last{held->places().size() >= object_hold::many_places ? account->group_->ends_ : nullptr};
  return {new charged_hold(std::move(account), std::move(held)), std::move(last)};
}

bool lease_account::gradual_charge::add_some(size_t places, claim* from) {
  return both_->add_some(places, from);
}

hold_ptr lease_account::gradual_charge::result() const { return {both_, both_->held()}; }
uint64_t lease_account::gradual_charge::bytes() const { return both_->bytes(); }

/// The bound has the form of the share of host memory: at most `c / (100 - c)` times what is left free.
uint64_t lease_account::too_much_below(tier_kind tier, uint64_t bytes, uint64_t held,
                                       uint64_t capacity) const {
  const lease_bounds& bounds = group_->bounds_;
  uint64_t limit = capacity * bounds.disk_percent / 100, c = bounds.connection_percent;
  uint64_t own = std::min(bytes_below(tier) + bytes, held);
  uint64_t wanted = own * (100 - c) + c * (held - std::min(held, limit));
  uint64_t allowed = c * (limit - std::min(held, limit));
  return wanted <= allowed ? 0 : (wanted - allowed + 99) / 100;
}

hold_ptr lease_account::charge_below(tier_kind tier, hold_ptr held, uint64_t bytes) {
  object_hold* hold = held.get();
  deleted_by last{held->places().size() >= object_hold::many_places ? group_->ends_ : nullptr};
  std::shared_ptr<charged_below> both(new charged_below(shared_from_this(), tier, bytes, std::move(held)),
                                      std::move(last));
  return {both, hold};
}

void lease_account::release(std::span<const object_place> places, uint32_t era) {
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    ++group_->changes_;
    const bool counted = era != 0 && group_->units_.era() == era;
    for (const object_place& place : some) {
      if (!place.present())
        continue;
      if (counted)
        group_->units_.remove(place);
      if (leases_.remove(place.id) != 0)
        continue;
      bytes_ -= place.physical_bytes;
      if (group_->accounts_.remove(place.id) != 0)
        continue;
      group_->bytes_.fetch_sub(place.physical_bytes, std::memory_order_relaxed);
    }
  });
}

} // namespace terrace
