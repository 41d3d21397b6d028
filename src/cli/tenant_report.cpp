#include "cli/tenant_report.hpp"

#include "cli/table.hpp"
#include "cli/units.hpp"

namespace terrace::cli {

std::string format_tenants(const std::vector<client::tenant_status>& tenants) {
  if (tenants.empty())
    return {};
  table rows({{"tenant", align::left},
              {"tier", align::left},
              {"used"},
              {"max"},
              {"guaranteed"},
              {"waiting"},
              {"refused"}});
  for (const client::tenant_status& one : tenants) {
    std::string name = one.name;
    if (one.rule)
      name += " (all)";
    else if (one.number != 0)
      name += "#" + std::to_string(one.number);
    for (const client::tenant_tier& tier : one.tiers)
      rows.add({name, tier.tier, format_bytes(tier.used_bytes),
                tier.max_bytes ? format_bytes(*tier.max_bytes) : "-", format_bytes(tier.guaranteed_bytes),
                format_count(tier.waiting_requests), format_count(tier.refused)});
  }
  return rows.to_string();
}

json tenants_json(const std::vector<client::tenant_status>& tenants) {
  json all = json::array();
  for (const client::tenant_status& one : tenants) {
    json tiers = json::array();
    for (const client::tenant_tier& tier : one.tiers)
      tiers.push_back({{"tier", tier.tier},
                       {"used_bytes", tier.used_bytes},
                       {"max_bytes", tier.max_bytes ? json(*tier.max_bytes) : json()},
                       {"guaranteed_bytes", tier.guaranteed_bytes},
                       {"waiting_requests", tier.waiting_requests},
                       {"refused", tier.refused}});
    all.push_back({{"name", one.name}, {"number", one.number}, {"rule", one.rule}, {"tiers", tiers}});
  }
  return all;
}

} // namespace terrace::cli
