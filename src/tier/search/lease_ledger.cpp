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

/// Calls `f` with the present objects of the places, block by block, and with the places that these are among. An object
/// that occurs twice comes in two calls.
template <class F>
void by_block(std::span<const object_place> places, F&& f) {
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    object_block some;
    for (end = begin; end < places.size(); ++end) {
      object_id id = places[end].id;
      if (!places[end].present())
        continue;
      if (some.objects == 0)
        some.block = object_block::of(id);
      else if (object_block::of(id) != some.block || some.has(id))
        break;
      some.objects |= object_block::bit(id);
    }
    if (some.objects != 0)
      f(some, places.subspan(begin, end - begin));
  }
}

/// Returns the bytes of those of the places that are among `some`.
uint64_t bytes_of(std::span<const object_place> places, const object_block& some) {
  uint64_t bytes = 0;
  for (const object_place& place : places)
    bytes += place.present() && some.has(place.id) ? place.physical_bytes : 0;
  return bytes;
}

} // namespace

// ---- counts of objects ----

uint64_t object_count_table::add(const object_block& some) {
  if (2 * (used_ + 1) > cells_.size())
    resize(cells_.empty() ? cells_min : 2 * cells_.size());
  cell& at = cells_[place_of(some.block)];
  used_ += at.objects == 0 ? 1 : 0;
  at.block = some.block;
  const uint64_t fresh = some.objects & ~at.objects;
  at.objects |= some.objects;
  uint64_t carry = some.objects & ~fresh;
  if (carry != 0 && !at.more)
    at.more = std::make_unique<planes>();
  for (size_t p = 0; carry != 0; ++p) {
    if (p == at.more->size())
      at.more->push_back(0);
    uint64_t& plane = (*at.more)[p];
    carry &= std::exchange(plane, plane ^ carry);
  }
  return fresh;
}

uint64_t object_count_table::remove(const object_block& some, bool shrinks) {
  size_t place = place_of(some.block);
  cell& at = cells_[place];
  assert((at.objects & some.objects) == some.objects);
  uint64_t again = 0; // objects that are counted more than once
  if (at.more)
    for (uint64_t plane : *at.more)
      again |= plane;
  const uint64_t gone = some.objects & ~again;
  uint64_t borrow = some.objects & again;
  for (size_t p = 0; borrow != 0; ++p) {
    uint64_t& plane = (*at.more)[p];
    borrow &= ~std::exchange(plane, plane ^ borrow);
  }
  if (at.more) {
    while (!at.more->empty() && at.more->back() == 0)
      at.more->pop_back();
    if (at.more->empty())
      at.more.reset();
  }
  at.objects &= ~gone;
  if (at.objects != 0)
    return gone;
  --used_;
  close_gap(place);
  if (shrinks && cells_.size() > cells_min && 8 * used_ < cells_.size())
    resize(cells_.size() / 2);
  return gone;
}

/// Moves back the entries that the removed one had displaced.
void object_count_table::close_gap(size_t gap) {
  size_t mask = cells_.size() - 1;
  for (size_t at = (gap + 1) & mask; cells_[at].objects != 0; at = (at + 1) & mask)
    if (((at - home_of(cells_[at].block)) & mask) >= ((at - gap) & mask)) {
      cells_[gap] = std::move(cells_[at]);
      cells_[at].objects = 0;
      gap = at;
    }
}

void object_count_table::resize(size_t cells) {
  std::vector<cell> former(cells);
  former.swap(cells_);
  for (cell& each : former)
    if (each.objects != 0)
      cells_[place_of(each.block)] = std::move(each);
}

uint64_t object_counts::add(const object_block& some) {
  auto& table = tables_[place_of(some)];
  if (!table) {
    table = spare_ ? std::move(spare_) : std::make_unique<object_count_table>();
    ++in_use_;
  }
  return table->add(some);
}

uint64_t object_counts::remove(const object_block& some) {
  auto& table = tables_[place_of(some)];
  const uint64_t gone = table->remove(some, in_use_ > few_tables);
  if (table->blocks() == 0) {
    --in_use_;
    if (table->cells() <= spare_cells_max)
      spare_ = std::move(table);
    table.reset();
  }
  return gone;
}

// ---- accounts ----

/// A hold and its charge. The charge ends first, so charged objects are always held.
class lease_account::charged_hold {
 public:
  charged_hold(account_ptr account, hold_ptr held) : account_(std::move(account)), held_(std::move(held)) {}
  charged_hold(const charged_hold&) = delete;
  charged_hold& operator=(const charged_hold&) = delete;
  ~charged_hold() { account_->release(std::span(held_->places()).first(charged_)); }

  bool add_some(size_t places, claim* from) {
    auto rest = std::span(held_->places()).subspan(charged_);
    auto some = rest.first(std::min(rest.size(), places));
    account_->add(some, from);
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

void lease_ledger::notify_of_growth(std::function<void()> grown) {
  std::lock_guard lock(mutex_);
  on_growth_.push_back(std::move(grown));
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
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    by_block(some, [&](const object_block& block, std::span<const object_place> part) {
      wanted += bytes_of(part, {block.block, block.objects & ~group_->accounts_.counted(block)});
    });
  });
  return claim_for(wanted, limit);
}

lease_account::claim lease_account::claim_for(uint64_t bytes, uint64_t limit) {
  std::lock_guard lock(group_->mutex_);
  uint64_t granted = std::min(bytes, room(limit));
  bytes_ += granted;
  group_->claimed_ += granted;
  ++group_->changes_;
  return {shared_from_this(), granted, granted == bytes};
}

bool lease_account::could_lease(uint64_t bytes, uint64_t limit) const {
  std::lock_guard lock(group_->mutex_);
  return bytes <= room(limit);
}

uint64_t lease_account::bytes() const {
  std::lock_guard lock(group_->mutex_);
  return bytes_;
}

std::vector<bool> lease_ledger::leased(std::span<const object_place> places) {
  std::vector<bool> answer(places.size());
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(mutex_);
    by_block(some, [&](const object_block& block, std::span<const object_place> part) {
      const object_block counted{block.block, accounts_.counted(block)};
      for (auto place = part.begin(); counted.objects != 0 && place != part.end(); ++place)
        if (place->present() && counted.has(place->id))
          answer[static_cast<size_t>(&*place - places.data())] = true;
    });
  });
  return answer;
}

void lease_account::add(std::span<const object_place> places, claim* from) {
  std::vector<std::function<void()>> grown;
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    ++group_->changes_;
    uint64_t more = 0;
    by_block(some, [&](object_block block, std::span<const object_place> part) {
      block.objects = leases_.add(block);
      if (block.objects == 0)
        return;
      bytes_ += bytes_of(part, block);
      block.objects = group_->accounts_.add(block);
      more += bytes_of(part, block);
    });
    group_->bytes_.fetch_add(more, std::memory_order_relaxed);
    if (from != nullptr)
      from->spend(more);
    if (more != 0)
      for (auto& each : std::exchange(group_->on_growth_, {}))
        grown.push_back(std::move(each));
  });
  for (const auto& each : grown)
    each();
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

void lease_account::release(std::span<const object_place> places) {
  in_batches(places, [&](std::span<const object_place> some) {
    std::lock_guard lock(group_->mutex_);
    ++group_->changes_;
    by_block(some, [&](object_block block, std::span<const object_place> part) {
      block.objects = leases_.remove(block);
      if (block.objects == 0)
        return;
      bytes_ -= bytes_of(part, block);
      block.objects = group_->accounts_.remove(block);
      group_->bytes_.fetch_sub(bytes_of(part, block), std::memory_order_relaxed);
    });
  });
}

} // namespace terrace
