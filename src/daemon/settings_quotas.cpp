// [[quota]]: bounds and shares of tenants. What is reported here never contains a salt.
#include "daemon/settings.hpp"
#include "daemon/settings_units.hpp"

#include <algorithm>
#include <charconv>

namespace terrace {

namespace {

using problems = std::vector<option_problem>;

constexpr size_t quotas_max = 256;
constexpr size_t name_bytes_max = 64;
constexpr size_t salt_bytes_max = 4'096;
constexpr size_t rule_bytes_max = 128;

std::string quota_option(size_t number, std::string_view key) {
  return "quota[" + std::to_string(number) + "]." + std::string(key);
}

/// "25%" or a size.
result<quota_part> parse_part(std::string_view text) {
  if (!text.ends_with('%')) {
    auto bytes = parse_bytes(text);
    if (!bytes)
      return tl::unexpected(bytes.error());
    return quota_part{*bytes, false};
  }
  quota_part part{0, true};
  auto digits = text.substr(0, text.size() - 1);
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), part.value);
  if (failed != std::errc() || end != digits.data() + digits.size() || part.value > 100)
    return fail(errc::bad_request, "is no percentage of 0 to 100");
  return part;
}

struct quota_key {
  std::string_view key;
  tier_kind tier;
  std::string quota_options::*text;
  bool is_max;
};
constexpr quota_key part_keys[] = {
    {"host_max", tier_kind::host, &quota_options::host_max, true},
    {"host_guaranteed", tier_kind::host, &quota_options::host_guaranteed, false},
    {"disk_max", tier_kind::disk, &quota_options::disk_max, true},
    {"disk_guaranteed", tier_kind::disk, &quota_options::disk_guaranteed, false},
};

bool good_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

void check_whose(problems& found, const quota_options& quota, size_t i) {
  if (!good_name(quota.name))
    found.push_back({quota_option(i, "name"), "is missing, or has other characters",
                     "1 to 64 of a-z, 0-9, '-' and '_': it is shown instead of the salt", "name it"});
  if (quota.tenant.empty() == quota.rule.empty())
    found.push_back({quota_option(i, "tenant"),
                     quota.tenant.empty() ? "and its rule are missing" : "is given beside a rule",
                     "either tenant, which is a salt, or rule, which is the beginning of salts and a *",
                     "write one of them"});
  if (quota.tenant.size() > salt_bytes_max)
    found.push_back({quota_option(i, "tenant"), "has " + std::to_string(quota.tenant.size()) + " bytes",
                     "at most " + std::to_string(salt_bytes_max), "shorten the salt"});
  if (!quota.rule.empty() && (!quota.rule.ends_with('*') || quota.rule.size() > rule_bytes_max + 1))
    found.push_back(
        {quota_option(i, "rule"), "does not end in *, or is too long",
         "at most " + std::to_string(rule_bytes_max) + " bytes and a *, such as \"batch-*\" or \"*\"",
         "correct it"});
}

bool overlap(const quota_options& a, const quota_options& b) {
  return a.group.empty() || b.group.empty() || a.group == b.group;
}

/// Each name, tenant and rule once in a trust group.
void check_alone(problems& found, const std::vector<quota_options>& all, size_t i) {
  auto say = [&](const char* key, size_t other) {
    found.push_back({quota_option(i, key), "is that of quota[" + std::to_string(other) + "]",
                     std::string("each ") + key + " once in a trust group", "remove one of them"});
  };
  for (size_t other = 0; other < i; ++other) {
    if (!overlap(all[other], all[i]))
      continue;
    if (all[i].name == all[other].name)
      say("name", other);
    if (!all[i].tenant.empty() && all[i].tenant == all[other].tenant)
      say("tenant", other);
    if (!all[i].rule.empty() && all[i].rule == all[other].rule)
      say("rule", other);
  }
}

void check_parts(problems& found, const settings& with, size_t i) {
  for (const quota_key& part : part_keys) {
    const std::string& text = with.quota[i].*part.text;
    if (text.empty())
      continue;
    if (part.tier == tier_kind::disk && !with.disk.enabled())
      found.push_back({quota_option(i, part.key), "is given, but disk.bytes is 0", "a disk tier",
                       "remove it, or give the disk bytes"});
    else if (auto parsed = parse_part(text); !parsed) {
      std::string wrong = parsed.error().text;
      const std::string meant = take_suggestion(wrong);
      found.push_back({quota_option(i, part.key), "is \"" + text + "\", which " + wrong,
                       "a size such as \"2GiB\", or at most \"100%\" of the tier",
                       "write " + std::string(part.key) + " = \"" + (meant.empty() ? "25%" : meant) + "\""});
    }
  }
}

} // namespace

const std::array<quota_options::key, 8>& quota_options::keys() {
  static const std::array<key, 8> all{{{"name", &quota_options::name},
                                       {"tenant", &quota_options::tenant},
                                       {"rule", &quota_options::rule},
                                       {"group", &quota_options::group},
                                       {"host_max", &quota_options::host_max, true},
                                       {"host_guaranteed", &quota_options::host_guaranteed, true},
                                       {"disk_max", &quota_options::disk_max, true},
                                       {"disk_guaranteed", &quota_options::disk_guaranteed, true}}};
  return all;
}

/// Precondition: each alone is valid.
tenant_quota quota_options::parsed() const {
  tenant_quota made;
  made.name = name;
  made.rule = !rule.empty();
  made.salt = made.rule ? rule.substr(0, rule.size() - 1) : tenant;
  for (const quota_key& part : part_keys)
    if (const std::string& text = this->*part.text; !text.empty()) {
      auto value = parse_part(text).value_or(quota_part{});
      if (part.is_max)
        made.in(part.tier).max = value;
      else
        made.in(part.tier).guaranteed = value;
    }
  return made;
}

std::vector<tenant_quota> settings::quotas_of(std::string_view group) const {
  std::vector<tenant_quota> found;
  for (const quota_options& one : quota)
    if (one.group.empty() || one.group == group)
      found.push_back(one.parsed());
  return found;
}

problems settings::validate_quotas() const {
  problems found;
  if (quota.size() > quotas_max)
    found.push_back({"quota", "has " + std::to_string(quota.size()) + " tables",
                     "at most " + std::to_string(quotas_max), "use rules for many tenants"});
  for (size_t i = 0; i < quota.size() && i < quotas_max; ++i) {
    check_whose(found, quota[i], i);
    check_alone(found, quota, i);
    check_parts(found, *this, i);
    if (!quota[i].group.empty() &&
        std::none_of(listen.begin(), listen.end(), [&](const auto& l) { return l.group == quota[i].group; }))
      found.push_back({quota_option(i, "group"), "is \"" + quota[i].group + "\", which no socket has",
                       "the group of a [[listen]]", "correct it, or remove it for all groups"});
  }
  return found;
}

/// Precondition: everything else is valid.
problems settings::validate_shares() const {
  problems found;
  for (const group_options& group : groups())
    for (tier_kind tier : {tier_kind::host, tier_kind::disk}) {
      uint64_t capacity = tier == tier_kind::host ? group.host_bytes : group.disk_bytes;
      uint64_t sum = 0;
      for (size_t i = 0; i < quota.size(); ++i) {
        if (!quota[i].group.empty() && quota[i].group != group.name)
          continue;
        auto terms = quota[i].parsed().in(tier);
        uint64_t share = terms.guaranteed.bytes_of(capacity);
        std::string key = std::string(to_string(tier)) + "_guaranteed";
        if (terms.max && share > terms.max->bytes_of(capacity))
          found.push_back({quota_option(i, key), "is more than its max", "at most max", "lower it"});
        sum += std::min(share, UINT64_MAX - sum);
        if (share != 0 && sum > capacity && sum - share <= capacity)
          found.push_back(
              {quota_option(i, key),
               "makes the guaranteed shares of group '" + group.name + "' " + format_bytes(sum) + " together",
               "at most the group's " + std::string(to_string(tier)) + " tier, " + format_bytes(capacity),
               "lower one of them"});
      }
    }
  return found;
}

} // namespace terrace
