// policies: the policy of each tier, and the results of shadow policies.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"
#include "connection/status_tables.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

task<> policies(client_request& request, const wire::Policies&, protocol::descriptor_list&) {
  constexpr const char* lost = "an actor of the trust group's policies has ended";
  const trust_group& group = request.client.group();
  shadow_report shadows;
  if (group.shadow_gate) {
    shadow_request question;
    shadows = co_await request.ask<shadow_report>(group.shadow, question, lost);
  }
  policies_request question;
  auto found = co_await request.ask<policies_report>(group.policy, question, lost);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_policies(body, group.name, found, shadows,
                          group.shadow_gate ? group.shadow_gate->skipped() : 0);
  });
}

// set_policy: sets the eviction policy of a tier.

task<> set_policy(client_request& request, const wire::SetPolicy& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a policy serves all clients of the trust group");
  auto wanted = policy_of(asked);
  co_await request.valid(wanted);
  const auto& policy = client.group().policy;
  auto change = *wanted;
  auto done =
      co_await request.ask<set_policy_answer>(policy, std::move(change), "the policy's actor has ended");
  co_await request.valid(done.failure);
  if (client.environment().log)
    client.environment().log(describe_change(client.group().name, *wanted, done));
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSetPolicyAnswerDirect(body, done.before.c_str());
  });
}

// end_inference: how an inference request ended, for learning policies.

task<> end_inference(client_request& request, const wire::EndInference& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto end = end_of(asked);
  if (client.group().shadow_gate && client.group().shadow_gate->offer_or_skip(1))
    request.actor.send(client.group().shadow, end);
  request.actor.tell_policy(std::move(end), 1);
  request.reply(wire::CreateEndInferenceAnswer);
  co_return;
}

// quota: shows the quotas of tenants and what they have, and changes a quota.

namespace {

/// Changes a quota, if the request has one; false: it was refused.
bool change_quota(client_request& request, const wire::Quota& asked) {
  connected_client& client = request.client;
  if (asked.name() == nullptr)
    return true;
  auto wanted = quota_of(asked);
  if (!request.ok(wanted))
    return false;
  const trust_group& group = client.group();
  auto changed = group.tenants->change(wanted->name, wanted->tier, wanted->change, group.capacities());
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
  co_await request.may_govern("quotas concern all tenants of the trust group");
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
