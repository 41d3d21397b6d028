#include "cli/status_report.hpp"

#include "cli/table.hpp"
#include "cli/units.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace terrace::cli {

namespace {

/// Formats a line for each policy and a column for each capacity, as `terrace simulate` does.
std::string format_shadows(const client::policies_status& status) {
  std::vector<uint64_t> capacities;
  std::vector<std::string> policies;
  for (const client::shadow_policy& shadow : status.shadows) {
    if (std::find(capacities.begin(), capacities.end(), shadow.capacity_bytes) == capacities.end())
      capacities.push_back(shadow.capacity_bytes);
    if (std::find(policies.begin(), policies.end(), shadow.policy) == policies.end())
      policies.push_back(shadow.policy);
  }
  std::sort(capacities.begin(), capacities.end());
  std::vector<column> columns{{"would have hit", align::left}};
  for (uint64_t capacity : capacities)
    columns.push_back({readable_bytes(capacity)});
  table ratios(columns);
  for (const std::string& policy : policies) {
    std::vector<std::string> row{policy};
    for (uint64_t capacity : capacities) {
      auto found = std::find_if(status.shadows.begin(), status.shadows.end(), [&](const auto& s) {
        return s.policy == policy && s.capacity_bytes == capacity;
      });
      bool known = found != status.shadows.end() && found->asked_bytes != 0;
      row.push_back(known ? format_ratio(share_of(found->hit_bytes, found->asked_bytes)) : "-");
    }
    ratios.add(std::move(row));
  }
  const client::shadow_policy& any = status.shadows.front();
  uint64_t memory = 0;
  for (const client::shadow_policy& shadow : status.shadows)
    memory += shadow.bookkeeping_bytes;
  std::string text = fmt::format("\n{}\n  of {} requested by {}; the shadow policies use {}\n",
                                 ratios.to_string(), readable_bytes(any.asked_bytes),
                                 format_counted(any.requests, "request"), readable_bytes(memory));
  if (status.skipped_requests != 0)
    text += fmt::format("  {} skipped because the shadow policies were busy\n",
                        format_counted(status.skipped_requests, "further request"));
  return text;
}

} // namespace

std::string format_policies(const client::policies_status& status) {
  std::string known;
  for (const std::string& name : status.known)
    known.append(known.empty() ? "" : ", ").append(name);
  std::string text = format_facts(
      {{"group", status.group},
       {"tracked", fmt::format("{}, {} of them not resident, in {}", format_counted(status.tracked, "object"),
                               format_count(status.ghosts), readable_bytes(status.bookkeeping_bytes))},
       {"policies", known}});
  table tiers({{"tier", align::left}, {"policy", align::left}, {"objects"}});
  for (const client::tier_policy& tier : status.tiers)
    tiers.add({tier.tier, tier.policy, format_count(tier.objects)});
  text.append("\n").append(tiers.to_string());
  text += status.shadows.empty()
              ? std::string("\n  no shadow policies: list some in [shadow] of the configuration\n")
              : format_shadows(status);
  return text;
}

json to_json(const client::policies_status& status) {
  json tiers = json::array(), shadows = json::array();
  for (const client::tier_policy& tier : status.tiers)
    tiers.push_back({{"tier", tier.tier}, {"policy", tier.policy}, {"objects", tier.objects}});
  for (const client::shadow_policy& s : status.shadows)
    shadows.push_back({{"policy", s.policy},
                       {"capacity_bytes", s.capacity_bytes},
                       {"hit_ratio", share_of(s.hit_bytes, s.asked_bytes)},
                       {"requests", s.requests},
                       {"asked", s.asked},
                       {"hits", s.hits},
                       {"asked_bytes", s.asked_bytes},
                       {"hit_bytes", s.hit_bytes},
                       {"evictions", s.evictions},
                       {"objects", s.objects},
                       {"used_bytes", s.used_bytes},
                       {"bookkeeping_bytes", s.bookkeeping_bytes}});
  return {{"group", status.group},
          {"tiers", tiers},
          {"tracked", status.tracked},
          {"ghosts", status.ghosts},
          {"bookkeeping_bytes", status.bookkeeping_bytes},
          {"shadows", shadows},
          {"skipped_requests", status.skipped_requests},
          {"known", status.known}};
}

} // namespace terrace::cli
