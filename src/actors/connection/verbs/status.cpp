// status: the state of the daemon, limited to the client's trust group.
#include "actors/connection/verbs.hpp"
#include "base/countdown.hpp"
#include "connection/group_status.hpp"

#include <chrono>

namespace terrace::actors::verbs {

namespace {

void answer(connection& client, const connection::request& what, group_status& all) {
  const group_parts& group = client.group();
  all.name_policies();
  auto now = std::chrono::steady_clock::now();
  for (const tier_parts& tier : group.tiers()) {
    all.tier_service(tier.kind, tier.degraded(), tier.notice(), tier.read_bytes_per_s(now));
    if (tier.direct)
      all.disk_refusal = tier.direct->refusal();
  }
  all.add_memory(*group.memory);
  auto clients = client.environment().clients->of_group(group.name);
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_status_answer(body, all, client.environment(), {clients.begin(), clients.end()});
  });
}

} // namespace

void status(connection& client, const connection::request& what, const wire::Status&,
            protocol::descriptor_list&) {
  const group_parts& group = client.group();
  auto all = std::make_shared<group_status>();
  all->name = group.name;
  all->path = group.path;
  all->isolated = group.isolated;
  auto arrived = std::make_shared<countdown>([&client, what, all] { answer(client, what, *all); });
  const auto& tiers = group.tiers();
  all->tiers.resize(tiers.size());
  for (size_t i = 0; i < tiers.size(); ++i) {
    arrived->begin();
    client.ask(tiers[i].tier, tier_status_request{},
               client.guarded(what,
                              [all, i, arrived](const tier_report& report) {
                                all->tiers[i] = report;
                                arrived->end();
                              }),
               [all, i, arrived] {
                 all->tier_ended(i);
                 arrived->end();
               });
  }
  if (group.disk() == nullptr)
    if (auto absent = group.report_absent()) // the daemon serves without it
      all->tiers.push_back(std::move(*absent));
  arrived->begin();
  client.ask(what, group.policy, policies_request{}, "the policy's actor has ended",
             [all, arrived](const policies_report& report) {
               all->policies = report;
               arrived->end();
             });
  client.ask(what, group.group, group_status_request{}, "the trust group's actor has ended",
             [all, arrived](const group_report& report) {
               all->group = report;
               arrived->end();
             });
}

} // namespace terrace::actors::verbs
