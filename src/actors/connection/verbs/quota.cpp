// quota: shows the quotas of tenants and what they have, and changes a quota.
#include "actors/connection/verbs.hpp"
#include "base/countdown.hpp"
#include "group/tenant_tables.hpp"

namespace terrace::actors::verbs {

namespace {

using tier_reports = std::shared_ptr<std::vector<tier_report>>;

/// As the tiers have them, after they were told of a change.
void show_quotas(connection& client, const connection::request& what) {
  const auto& tiers = client.group().tiers();
  auto all = std::make_shared<std::vector<tier_report>>(tiers.size());
  auto arrived = std::make_shared<countdown>([&client, what, all] {
    client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreateQuotaAnswer(body, write_tenants(body, *all));
    });
  });
  for (size_t i = 1; i < tiers.size(); ++i)
    arrived->begin();
  for (size_t i = 0; i < tiers.size(); ++i)
    client.ask(what, tiers[i].tier, tier_status_request{}, "a tier has ended",
               [all, i, arrived](const tier_report& report) {
                 (*all)[i] = report;
                 arrived->end();
               });
}

} // namespace

void quota(connection& client, const connection::request& what, const wire::Quota& asked,
           protocol::descriptor_list&) {
  if (!client.may_govern(what, "quotas concern all tenants of the trust group"))
    return;
  if (asked.name() != nullptr) {
    auto wanted = quota_of(asked);
    if (!client.ok(what, wanted))
      return;
    const group_parts& group = client.group();
    auto changed = group.tenants->change(wanted->name, wanted->tier, wanted->what, group.capacities());
    if (!client.ok(what, changed))
      return;
    if (client.environment().log)
      client.environment().log("group " + group.name + ": quota " + wanted->text());
    for (const tier_parts& tier : group.tiers())
      client.send(tier.tier, quotas_changed_notice{});
  }
  show_quotas(client, what);
}

} // namespace terrace::actors::verbs
