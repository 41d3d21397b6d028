#include "index/tenant_directory.hpp"

#include <algorithm>

namespace terrace {

result<void> check_shares(std::span<const tenant_quota> quotas, tier_kind tier, uint64_t capacity) {
  uint64_t sum = 0;
  for (const tenant_quota& one : quotas) {
    const tier_quota& quota = one.in(tier);
    uint64_t share = quota.guaranteed.bytes_of(capacity);
    if (quota.max && share > quota.max->bytes_of(capacity))
      return fail(errc::bad_request, "expected a guaranteed share of at most max, got " +
                                         std::to_string(share) + " bytes of the tier " + to_string(tier) +
                                         " for quota " + one.name + ", whose max is " +
                                         std::to_string(quota.max->bytes_of(capacity)));
    sum += std::min(share, UINT64_MAX - sum);
  }
  if (sum > capacity)
    return fail(errc::bad_request, "expected guaranteed shares of at most the tier together, got " +
                                       std::to_string(sum) + " of the " + std::to_string(capacity) +
                                       " bytes of the tier " + to_string(tier));
  return {};
}

digest tenant_directory::digest_of(std::string_view salt) {
  hasher_.begin();
  hasher_.update(salt);
  return hasher_.finish();
}

/// Returns the index of the quota that applies to the salt.
std::optional<size_t> tenant_directory::match(const digest& salt, std::string_view beginning) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < quotas_.size(); ++i) {
    const tenant_quota& one = quotas_[i];
    if (!one.rule && listed_[i] == salt)
      return i;
    if (one.rule && beginning.starts_with(one.salt) &&
        (!best || one.salt.size() > quotas_[*best].salt.size()))
      best = i;
  }
  return best;
}

tenant_id tenant_directory::enter(size_t quota, const digest& salt) {
  const tenant_quota& of = quotas_[quota];
  auto [known, added] = known_.try_emplace({of.name, salt});
  if (added)
    known->second = static_cast<tenant_id>(++last_);
  auto [at, anew] = tenants_.try_emplace(known->second);
  if (anew)
    at->second = {of.name, of.rule ? ++numbers_[of.name] : 0, quota, salt};
  at->second.quota = quota;
  return known->second;
}

void tenant_directory::set_quotas(std::vector<tenant_quota> quotas) {
  std::lock_guard lock(mutex_);
  quotas_ = std::move(quotas);
  listed_.clear();
  auto before = std::exchange(tenants_, {});
  auto numbers = [&](size_t quota, const digest& salt) { // a tenant that stays keeps its number
    auto known = known_.find({quotas_[quota].name, salt});
    if (known == known_.end())
      return;
    if (auto was = before.find(known->second); was != before.end())
      tenants_.insert(*was);
  };
  for (const tenant_quota& one : quotas_)
    listed_.push_back(one.rule ? digest{} : digest_of(one.salt));
  auto stay = [&](size_t quota, const digest& salt) {
    numbers(quota, salt);
    return enter(quota, salt);
  };
  for (size_t i = 0; i < quotas_.size(); ++i)
    if (!quotas_[i].rule)
      stay(i, listed_[i]);
  for (auto& [salt, known] : salts_) {
    auto quota = match(salt, known.beginning);
    known.tenant = quota ? stay(*quota, salt) : tenant_id{};
  }
  std::erase_if(known_, [&](const auto& one) { return !tenants_.contains(one.second); });
}

std::vector<tenant_quota> tenant_directory::quotas() const {
  std::lock_guard lock(mutex_);
  return quotas_;
}

result<void> tenant_directory::change(std::string_view name, tier_kind tier, const quota_change& change,
                                      const capacities& tiers) {
  std::lock_guard lock(mutex_);
  auto changed = quotas_;
  auto found =
      std::find_if(changed.begin(), changed.end(), [&](const auto& one) { return one.name == name; });
  if (found == changed.end()) {
    std::string names;
    for (const tenant_quota& one : changed)
      names += (names.empty() ? "" : ", ") + one.name;
    return fail(errc::not_found,
                "expected the name of a quota, one of: " + (names.empty() ? "none is configured" : names));
  }
  uint64_t capacity = tiers.at(static_cast<size_t>(tier));
  if (capacity == 0)
    return fail(errc::not_found, std::string("this trust group has no ") + to_string(tier) + " tier");
  tier_quota& quota = found->in(tier);
  if (change.unlimited)
    quota.max.reset();
  if (change.max)
    quota.max = change.max;
  if (change.guaranteed)
    quota.guaranteed = *change.guaranteed;
  if (auto fits = check_shares(changed, tier, capacity); !fits)
    return fits;
  quotas_ = std::move(changed);
  return {};
}

void tenant_directory::opened(space_id space, std::string_view salt) {
  std::lock_guard lock(mutex_);
  auto [at, added] = spaces_.try_emplace(static_cast<uint32_t>(space));
  if (!added || salt.empty())
    return;
  at->second = digest_of(salt);
  salted& known = salts_[at->second];
  if (known.spaces++ != 0)
    return;
  known.beginning = salt.substr(0, rule_bytes_max);
  if (auto quota = match(at->second, known.beginning))
    known.tenant = enter(*quota, at->second);
}

/// Called when the last space with the salt is forgotten.
void tenant_directory::leave(const digest& salt, const salted& known) {
  auto at = tenants_.find(known.tenant);
  if (at == tenants_.end() || at->second.number == 0)
    return; // a listed tenant stays
  known_.erase({at->second.name, salt});
  tenants_.erase(at);
}

void tenant_directory::forgotten(std::span<const space_id> spaces) {
  std::lock_guard lock(mutex_);
  for (space_id one : spaces) {
    auto at = spaces_.find(static_cast<uint32_t>(one));
    if (at == spaces_.end())
      continue;
    auto known = salts_.find(at->second);
    spaces_.erase(at);
    if (known == salts_.end() || --known->second.spaces != 0)
      continue;
    leave(known->first, known->second);
    salts_.erase(known);
  }
}

std::optional<tenant_id> tenant_directory::tenant_of(space_id space) const {
  std::lock_guard lock(mutex_);
  auto at = spaces_.find(static_cast<uint32_t>(space));
  if (at == spaces_.end())
    return std::nullopt;
  auto known = salts_.find(at->second);
  return known == salts_.end() ? tenant_id{} : known->second.tenant;
}

std::optional<tenant_directory::terms> tenant_directory::terms_of(tenant_id id, tier_kind tier) const {
  std::lock_guard lock(mutex_);
  auto at = tenants_.find(id);
  if (at == tenants_.end())
    return std::nullopt;
  return terms{id, at->second.name, at->second.number, quotas_[at->second.quota].in(tier)};
}

std::vector<tenant_directory::terms> tenant_directory::listed(tier_kind tier) const {
  std::lock_guard lock(mutex_);
  std::vector<terms> all;
  for (size_t i = 0; i < quotas_.size(); ++i) {
    tenant_id id{};
    if (!quotas_[i].rule)
      id = known_.at({quotas_[i].name, listed_[i]});
    all.push_back({id, quotas_[i].name, 0, quotas_[i].in(tier)});
  }
  return all;
}

} // namespace terrace
