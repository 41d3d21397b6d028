// status: the state of the daemon, limited to the client's trust group.
#include "actors/connection/verbs.hpp"
#include "connection/status_tables.hpp"

namespace terrace::actors::verbs {

namespace {

/// The answers of the group's actors, collected one by one.
struct gathered {
  std::vector<tier_report> tiers;
  group_report group;
  policies_report policies;
  size_t waiting_for = 0;
};

/// Availability, which movers know and tiers do not.
void add_service(const group_parts& group, std::vector<tier_report>& tiers) {
  for (const tier_parts& each : group.tiers())
    for (tier_report& tier : tiers) {
      if (tier.kind != each.kind)
        continue;
      tier.notice = each.notice();
      if (std::string reason = each.degraded(); !reason.empty()) {
        tier.state = "degraded";
        tier.reason = std::move(reason);
      }
    }
}

/// Adds what only the arena knows.
void add_memory(const segmented_arena& memory, tier_report& host) {
  host.huge_page_bytes = memory.huge_page_bytes();
  host.leaving_bytes = memory.leaving_bytes();
  host.notice = memory.huge_pages_refusal();
}

void answer(connection& client, const connection::request& what, gathered& all) {
  for (const policies_report::tier& each : all.policies.tiers)
    for (tier_report& tier : all.tiers)
      if (tier.kind == each.kind)
        tier.policy = each.policy;
  add_service(client.group(), all.tiers);
  add_memory(*client.group().memory, all.tiers.front());
  const auto& environment = client.environment();
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::TierStatus>> tiers;
    for (const tier_report& tier : all.tiers)
      tiers.push_back(write_status(body, tier));
    std::vector<flatbuffers::Offset<wire::SpaceStatus>> spaces;
    for (const space_ptr& space : all.group.open_spaces)
      spaces.push_back(write_status(body, *space));
    auto group = wire::CreateGroupStatusDirect(
        body, client.group().name.c_str(), client.group().path.c_str(), client.group().isolated,
        static_cast<uint32_t>(all.group.spaces), static_cast<uint32_t>(all.group.leases), &tiers, &spaces,
        environment.regions ? environment.regions->bytes() : 0,
        environment.regions ? environment.regions->bytes_max() : 0);
    auto groups = body.CreateVector(&group, 1);
    std::vector<flatbuffers::Offset<wire::ClientStatus>> clients;
    for (const client_ptr& other : environment.clients->of_group(client.group().name))
      clients.push_back(write_status(body, *other));
    auto listed = body.CreateVector(clients);
    auto ring = body.CreateVectorOfStrings(environment.ring_features);
    auto boot = body.CreateVector(environment.boot.bytes.data(), environment.boot.bytes.size());
    auto version = body.CreateString(TERRACE_VERSION);
    auto uptime =
        std::chrono::duration_cast<std::chrono::milliseconds>(environment.now() - environment.started);
    return wire::CreateStatusAnswer(body, version, boot, static_cast<uint64_t>(uptime.count()),
                                    environment.workers, ring, groups, listed);
  });
}

void gather_tier(connection& client, const connection::request& what, const std::shared_ptr<gathered>& all,
                 const tier_actor& tier, size_t place) {
  ++all->waiting_for;
  auto arrived = [&client, what, all] {
    if (--all->waiting_for == 0)
      answer(client, what, *all);
  };
  client.ask(
      tier, tier_status_request{},
      [all, place, arrived](const tier_report& report) {
        all->tiers[place] = report;
        arrived();
      },
      [all, place, arrived] {
        all->tiers[place].state = "degraded";
        all->tiers[place].reason = "its actor has ended";
        arrived();
      });
}

} // namespace

void status(connection& client, const connection::request& what, const wire::Status&,
            protocol::descriptor_list&) {
  auto all = std::make_shared<gathered>();
  const group_parts& group = client.group();
  const auto& tiers = group.tiers();
  all->tiers.resize(tiers.size());
  ++all->waiting_for; // the group's own answer
  for (size_t i = 0; i < tiers.size(); ++i)
    gather_tier(client, what, all, tiers[i].tier, i);
  if (group.disk() == nullptr)
    if (auto absent = group.report_absent()) // the daemon serves without it
      all->tiers.push_back(std::move(*absent));
  ++all->waiting_for;
  client.ask(what, group.policy, policies_request{}, "the policy's actor has ended",
             [&client, what, all](const policies_report& report) {
               all->policies = report;
               if (--all->waiting_for == 0)
                 answer(client, what, *all);
             });
  client.ask(what, group.group, group_status_request{}, "the trust group's actor has ended",
             [&client, what, all](const group_report& report) {
               all->group = report;
               if (--all->waiting_for == 0)
                 answer(client, what, *all);
             });
}

} // namespace terrace::actors::verbs
