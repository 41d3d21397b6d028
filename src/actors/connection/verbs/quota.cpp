// quota: shows the quotas of tenants and what they have, and changes a quota.
#include "actors/connection/verbs.hpp"
#include "group/tenant_tables.hpp"

namespace terrace::actors::verbs {

namespace {

/// Changes a quota, if the request has one; false: it was refused.
bool change_quota(client_request& request, const wire::Quota& asked) {
  connected_client& client = request.client;
  if (asked.name() == nullptr)
    return true;
  auto wanted = quota_of(asked);
  if (!request.ok(wanted))
    return false;
  const group_parts& group = client.group();
  auto changed = group.tenants->change(wanted->name, wanted->tier, wanted->what, group.capacities());
  if (!request.ok(changed))
    return false;
  if (client.environment().log)
    client.environment().log("group " + group.name + ": quota " + wanted->text());
  for (const tier_handle& tier : group.tiers())
    request.actor.send(tier.tier, quotas_changed_notice{});
  return true;
}

} // namespace

task<> quota(client_request& request, const wire::Quota& asked, protocol::descriptor_list&) {
  if (!request.may_govern("quotas concern all tenants of the trust group"))
    co_return;
  if (!change_quota(request, asked))
    co_return;
  std::vector<tier_report> all; // as the tiers have it, after they were told of the change
  auto reports = co_await request.ask_tiers<tier_report, tier_status_request>();
  for (auto& report : reports) {
    co_await request.valid(report);
    all.push_back(std::move(*report));
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateQuotaAnswer(body, write_tenants(body, all));
  });
}

} // namespace terrace::actors::verbs
