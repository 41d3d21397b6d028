#include "group/tenant_tables.hpp"

#include "base/tier_properties.hpp"

#include <map>
#include <utility>

namespace terrace {

namespace {

std::string text_of(const quota_part& part) {
  return std::to_string(part.value) + (part.percent ? " %" : " bytes");
}

std::optional<quota_part> part_of(flatbuffers::Optional<uint64_t> bytes,
                                  flatbuffers::Optional<uint8_t> percent) {
  if (bytes)
    return quota_part{*bytes, false};
  if (percent)
    return quota_part{*percent, true};
  return std::nullopt;
}

} // namespace

std::string quota_setting::text() const {
  std::string told = name + ": " + to_string(tier);
  if (change.unlimited)
    told += " without a bound";
  if (change.max)
    told += " at most " + text_of(*change.max);
  if (change.guaranteed)
    told += " guaranteed " + text_of(*change.guaranteed);
  return told;
}

result<quota_setting> quota_of(const wire::Quota& asked) {
  quota_setting made;
  made.name = asked.name()->str();
  std::string tier = asked.tier() ? asked.tier()->str() : std::string();
  for (tier_kind kind : governed_tiers)
    if (tier == to_string(kind))
      made.tier = kind;
  if (made.tier == nowhere)
    return fail(errc::bad_request, "expected tier \"host\" or \"disk\", got \"" + tier + "\"");
  int maxima = (asked.max_bytes() ? 1 : 0) + (asked.max_percent() ? 1 : 0) + (asked.unlimited() ? 1 : 0);
  if (maxima > 1 || (asked.guaranteed_bytes() && asked.guaranteed_percent()))
    return fail(errc::bad_request,
                "expected at most one of max_bytes, max_percent and unlimited, and at most one of "
                "guaranteed_bytes and guaranteed_percent");
  made.change.max = part_of(asked.max_bytes(), asked.max_percent());
  made.change.guaranteed = part_of(asked.guaranteed_bytes(), asked.guaranteed_percent());
  made.change.unlimited = asked.unlimited();
  if (maxima == 0 && !made.change.guaranteed)
    return fail(errc::bad_request, "expected a new max or a new guaranteed share, got neither");
  return made;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::TenantStatus>>>
write_tenants(flatbuffers::FlatBufferBuilder& body, const std::vector<tier_report>& tiers) {
  struct line {
    tenant_report report;
    std::vector<flatbuffers::Offset<wire::TenantTier>> tiers;
  };
  std::vector<line> lines; // in the order of the first tier that has the tenant
  std::map<std::pair<std::string, uint32_t>, size_t> known;
  for (const tier_report& tier : tiers)
    for (const tenant_report& one : tier.tenants) {
      auto [at, added] = known.try_emplace({one.name, one.number}, lines.size());
      if (added)
        lines.push_back({one, {}});
      auto name = body.CreateString(to_string(tier.kind));
      wire::TenantTierBuilder out(body);
      out.add_tier(name);
      out.add_used_bytes(one.used_bytes);
      if (one.max_bytes)
        out.add_max_bytes(*one.max_bytes);
      out.add_guaranteed_bytes(one.guaranteed_bytes);
      out.add_waiting_requests(one.waiting);
      out.add_refused(one.refused);
      lines[at->second].tiers.push_back(out.Finish());
    }
  std::vector<flatbuffers::Offset<wire::TenantStatus>> written;
  for (const line& one : lines)
    written.push_back(wire::CreateTenantStatusDirect(body, one.report.name.c_str(), one.report.number,
                                                     one.report.rule, &one.tiers));
  return body.CreateVector(written);
}

} // namespace terrace
