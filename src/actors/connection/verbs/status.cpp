// status: the state of the daemon, limited to the client's trust group.
#include "actors/connection/verbs.hpp"
#include "connection/group_status.hpp"

#include <chrono>
#include <optional>

namespace terrace::actors::verbs {

namespace {

void answer(client_request& request, group_status& all) {
  connected_client& client = request.client;
  const group_parts& group = client.group();
  all.name_policies();
  auto now = std::chrono::steady_clock::now();
  for (const tier_handle& tier : group.tiers()) {
    all.tier_service(tier.kind, tier.degraded(), tier.notice(), tier.read_bytes_per_s(now));
    if (tier.direct)
      all.disk_refusal = tier.direct->refusal();
  }
  all.add_memory(*group.memory);
  auto clients = client.environment().clients->of_group(group.name);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_status_answer(body, all, client.environment(), {clients.begin(), clients.end()});
  });
}

} // namespace

task<> status(client_request& request, const wire::Status&, protocol::descriptor_list&) {
  const group_parts& group = request.client.group();
  group_status all;
  all.name = group.name;
  all.path = group.path;
  all.isolated = group.isolated;
  std::optional<tier_report> absent; // looked at now, because a disk may join while the tiers answer
  if (group.disk() == nullptr)
    absent = group.report_absent();
  auto reports = co_await request.ask_tiers<tier_report, tier_status_request>();
  all.tiers.resize(reports.size());
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i])
      all.tiers[i] = std::move(*reports[i]);
    else
      all.tier_ended(i);
  }
  if (absent) // the daemon serves without it
    all.tiers.push_back(std::move(*absent));
  policies_request policies;
  all.policies =
      co_await request.ask<policies_report>(group.policy, policies, "the policy's actor has ended");
  group_status_request counts;
  all.group = co_await request.ask<group_report>(group.group, counts, group_ended);
  answer(request, all);
}

} // namespace terrace::actors::verbs
