#include "tier/quota/tenant_quotas.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

tenant_quotas::tenant_quotas(tier_kind tier, std::shared_ptr<const tenant_directory> directory,
                             std::function<uint64_t()> capacity, std::shared_ptr<tenant_states> board)
    : tier_(tier), directory_(std::move(directory)), capacity_(std::move(capacity)),
      board_(std::move(board)) {
  refresh();
}

// ---- tenants of spaces ----

tenant_quotas::tenant_use* tenant_quotas::of(tenant_id tenant) {
  auto at = tenants_.find(tenant);
  return at == tenants_.end() ? nullptr : &at->second;
}

const tenant_quotas::tenant_use* tenant_quotas::of(tenant_id tenant) const {
  auto at = tenants_.find(tenant);
  return at == tenants_.end() ? nullptr : &at->second;
}

tenant_quotas::tenant_use& tenant_quotas::enter(tenant_id tenant) {
  auto [at, added] = tenants_.try_emplace(tenant);
  if (!added)
    return at->second;
  if (auto terms = directory_->terms_of(tenant, tier_)) {
    at->second.name = terms->name;
    at->second.number = terms->number;
    at->second.quota = terms->quota;
    if (board_)
      at->second.shown = board_->line(terms->name);
  }
  if (at->second.quota.guaranteed.value != 0)
    share();
  return at->second;
}

void tenant_quotas::find(space_use& use, space_id space) {
  auto known = directory_->tenant_of(space);
  use.known = known.has_value();
  use.tenant = known.value_or(tenant_id{});
}

tenant_id tenant_quotas::tenant_of(space_id space) {
  auto at = spaces_.find(static_cast<uint32_t>(space));
  if (at == spaces_.end())
    return directory_->tenant_of(space).value_or(tenant_id{});
  space_use& use = at->second;
  if (use.known)
    return use.tenant;
  find(use, space);
  if (use.tenant != tenant_id{}) // charges what was here before the tenant was known
    charge(use.tenant, enter(use.tenant), use.bytes);
  return use.tenant;
}

tenant_id tenant_quotas::charged(space_id space) const {
  auto at = spaces_.find(static_cast<uint32_t>(space));
  return at == spaces_.end() ? tenant_id{} : at->second.tenant;
}

void tenant_quotas::forget_if_unused(tenant_id tenant) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end())
    return;
  const tenant_use& use = at->second;
  bool listed = use.number == 0 && !use.name.empty(); // a tenant without a name has lost its quota
  if (listed || use.used != 0 || use.booked != 0 || use.waiting != 0)
    return;
  bool shares = use.quota.guaranteed.value != 0;
  tenants_.erase(at);
  if (shares)
    share();
}

// ---- bytes ----

void tenant_quotas::charge(tenant_id tenant, tenant_use& use, uint64_t bytes) {
  use.used += bytes;
  if (use.shown)
    use.shown->used_bytes += bytes;
  if (use.used > use.guaranteed && !use.shield.empty())
    grown_.emplace_back(tenant, bytes);
  if (auto max = use.max(capacity_()); max && use.used > *max)
    may_exceed_ = true;
}

void tenant_quotas::took(space_id space, uint64_t bytes) {
  auto [at, added] = spaces_.try_emplace(static_cast<uint32_t>(space));
  space_use& use = at->second;
  if (added)
    find(use, space);
  use.bytes += bytes;
  if (use.tenant != tenant_id{})
    charge(use.tenant, enter(use.tenant), bytes);
}

void tenant_quotas::gave_back(space_id space, uint64_t bytes) {
  auto at = spaces_.find(static_cast<uint32_t>(space));
  assert(at != spaces_.end() && at->second.bytes >= bytes);
  at->second.bytes -= bytes;
  tenant_id tenant = at->second.tenant;
  if (tenant_use* use = of(tenant)) {
    assert(use->used >= bytes);
    use->used -= bytes;
    if (use->shown)
      use->shown->used_bytes -= bytes;
    forget_if_unused(tenant);
  }
  if (at->second.bytes == 0)
    spaces_.erase(at);
}

std::vector<std::string> tenant_quotas::check(const table_totals& counted) const {
  std::vector<std::string> all;
  auto differ = [&](const std::string& who, uint64_t charged, uint64_t has) {
    if (charged != has)
      all.push_back(who + " is charged " + std::to_string(charged) + " bytes, and its objects have " +
                    std::to_string(has));
  };
  std::map<tenant_id, uint64_t> tenants;
  for (const auto& [space, use] : spaces_) {
    auto found = counted.by_space.find(space);
    uint64_t has = found == counted.by_space.end() ? 0 : found->second.bytes;
    differ("space " + std::to_string(space), use.bytes, has);
    tenants[use.tenant] += has;
  }
  for (const auto& [space, sum] : counted.by_space)
    if (!spaces_.contains(space))
      differ("space " + std::to_string(space), 0, sum.bytes);
  for (const auto& [tenant, use] : tenants_)
    differ("tenant " + use.name, use.used, tenants[tenant]);
  return all;
}

void tenant_quotas::refresh() {
  auto before = std::exchange(tenants_, {});
  listed_ = directory_->listed(tier_);
  if (board_) {
    board_->keep([&](const std::string& name) {
      return std::any_of(listed_.begin(), listed_.end(), [&](const auto& one) { return one.name == name; });
    });
    for (const auto& one : listed_)
      board_->line(one.name)->used_bytes = 0;
  }
  for (const auto& one : listed_)
    if (one.tenant != tenant_id{})
      enter(one.tenant);
  for (auto& [tenant, was] : before) {
    if (was.booked == 0 && was.waiting == 0 && was.shield.empty() && was.refused == 0)
      continue;
    tenant_use& now =
        enter(tenant); // enters a tenant that no longer exists, too, because it waits or has booked something
    now.booked = was.booked;
    now.waiting = was.waiting;
    now.refused = was.refused;
    now.shield = std::move(was.shield);
  }
  for (auto& [number, use] : spaces_) {
    find(use, static_cast<space_id>(number));
    if (use.tenant != tenant_id{})
      charge(use.tenant, enter(use.tenant), use.bytes);
  }
  share_anew();
  grown_.clear();
  for (auto& [tenant, use] : tenants_)
    if (!use.shield.empty())
      grown_.emplace_back(tenant, UINT64_MAX); // objects that keep their shield are named again
}

// ---- bounds ----

std::optional<uint64_t> tenant_quotas::max_of(tenant_id tenant) const {
  const tenant_use* use = of(tenant);
  if (use != nullptr)
    return use->max(capacity_());
  auto terms = directory_->terms_of(tenant, tier_); // the tenant has nothing here yet
  return terms && terms->quota.max ? std::optional(terms->quota.max->bytes_of(capacity_())) : std::nullopt;
}

uint64_t tenant_quotas::used_by(tenant_id tenant) const {
  const tenant_use* use = of(tenant);
  return use == nullptr ? 0 : use->used + use->booked;
}

uint64_t tenant_quotas::missing_for(tenant_id tenant, uint64_t bytes) const {
  auto max = max_of(tenant);
  uint64_t wanted = used_by(tenant) + bytes;
  return max && wanted > *max ? wanted - *max : 0;
}

tenant_quotas::room tenant_quotas::room_for(tenant_id tenant, uint64_t bytes) const {
  auto max = max_of(tenant);
  if (max && bytes > *max)
    return room::never;
  return missing_for(tenant, bytes) == 0 ? room::free : room::full;
}

std::vector<tenant_id> tenant_quotas::in_excess() {
  if (capacity_() != shared_capacity_)
    share_anew();
  std::vector<tenant_id> found;
  if (may_exceed_)
    for (const auto& [tenant, use] : tenants_)
      if (auto max = use.max(capacity_()); max && use.used + use.booked > *max)
        found.push_back(tenant);
  may_exceed_ = !found.empty();
  return found;
}

void tenant_quotas::book(tenant_id tenant, uint64_t bytes) {
  if (tenant == tenant_id{} || bytes == 0)
    return;
  enter(tenant).booked += bytes;
}

void tenant_quotas::unbook(tenant_id tenant, uint64_t bytes) {
  tenant_use* use = of(tenant);
  if (use == nullptr)
    return;
  assert(use->booked >= bytes);
  use->booked -= bytes;
  forget_if_unused(tenant);
}

// ---- shares ----

void tenant_quotas::share() {
  uint64_t left = shared_capacity_ = capacity_();
  guarantees_ = false;
  for (auto& [tenant, use] : tenants_) {
    uint64_t wanted = use.quota.guaranteed.bytes_of(shared_capacity_);
    use.guaranteed = wanted <= left ? wanted : 0;
    left -= use.guaranteed;
    guarantees_ = guarantees_ || use.guaranteed != 0;
  }
  may_exceed_ = may_exceed_ || std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& one) {
                  auto max = one.second.max(shared_capacity_);
                  return max && one.second.used > *max;
                });
}

void tenant_quotas::share_anew() {
  share();
  show_bounds();
}

uint64_t tenant_quotas::guaranteed_to(tenant_id tenant) {
  if (capacity_() != shared_capacity_)
    share_anew();
  const tenant_use* use = of(tenant);
  return use == nullptr ? 0 : use->guaranteed;
}

bool tenant_quotas::may_lose(tenant_id tenant, uint64_t bytes, uint64_t lost) {
  uint64_t share = guaranteed_to(tenant);
  if (share == 0)
    return true;
  return of(tenant)->used >= share + lost + bytes;
}

tenant_shield* tenant_quotas::shield_of(tenant_id tenant) {
  tenant_use* use = of(tenant);
  return use == nullptr ? nullptr : &use->shield;
}

std::vector<std::pair<tenant_id, uint64_t>> tenant_quotas::beyond_shares() {
  std::vector<std::pair<tenant_id, uint64_t>> found;
  for (const auto& [tenant, use] : tenants_)
    if (!use.shield.empty() && use.used > use.guaranteed)
      found.emplace_back(tenant, use.used - use.guaranteed);
  return found;
}

// ---- what is shown ----

std::string tenant_quotas::describe(tenant_id tenant) const {
  auto terms = directory_->terms_of(tenant, tier_);
  auto max = max_of(tenant);
  return "quota " + (terms ? terms->name : std::string("(removed)")) + " allows " +
         (max ? std::to_string(*max) : std::string("any number of")) + " bytes in the tier " +
         to_string(tier_);
}

void tenant_quotas::refused(tenant_id tenant) {
  tenant_use& use = enter(tenant);
  ++use.refused;
  if (use.shown)
    ++use.shown->refused;
  forget_if_unused(tenant);
}

void tenant_quotas::waiting(tenant_id tenant, bool more) {
  tenant_use& use = enter(tenant);
  assert(more || use.waiting != 0);
  use.waiting += more ? 1 : UINT64_MAX;
  if (use.shown)
    use.shown->waiting += more ? 1 : UINT64_MAX;
  if (!more)
    forget_if_unused(tenant);
}

void tenant_quotas::show_bounds() {
  if (!board_)
    return;
  for (const auto& one : listed_) {
    auto shown = board_->line(one.name);
    shown->max_bytes = one.quota.max ? one.quota.max->bytes_of(shared_capacity_) : UINT64_MAX;
    shown->guaranteed_bytes = one.quota.guaranteed.bytes_of(shared_capacity_);
  }
}

std::vector<tenant_report> tenant_quotas::report() {
  if (capacity_() != shared_capacity_)
    share_anew();
  std::vector<tenant_report> all;
  std::map<std::string, size_t> rules;
  for (const auto& one : listed_) {
    tenant_report line;
    line.name = one.name;
    line.rule = one.tenant == tenant_id{};
    if (line.rule)
      rules[one.name] = all.size();
    if (one.quota.max)
      line.max_bytes = one.quota.max->bytes_of(shared_capacity_);
    line.guaranteed_bytes = one.quota.guaranteed.bytes_of(shared_capacity_);
    if (const tenant_use* use = of(one.tenant); use != nullptr && !line.rule) {
      line.used_bytes = use->used;
      line.guaranteed_bytes = use->guaranteed;
      line.waiting = use->waiting;
      line.refused = use->refused;
    }
    all.push_back(std::move(line));
  }
  for (const auto& [tenant, use] : tenants_) {
    if (use.number == 0)
      continue;
    if (auto rule = rules.find(use.name); rule != rules.end()) {
      tenant_report& sum = all[rule->second];
      ++sum.tenants;
      sum.used_bytes += use.used;
      sum.waiting += use.waiting;
      sum.refused += use.refused;
    }
    if (all.size() < tenants_shown_max)
      all.push_back({use.name, use.number, false, 0, use.used, use.max(shared_capacity_), use.guaranteed,
                     use.waiting, use.refused});
  }
  return all;
}

} // namespace terrace
