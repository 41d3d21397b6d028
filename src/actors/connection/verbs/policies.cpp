// policies: the policy of each tier, and the results of shadow policies.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

struct policies_gathered {
  policies_report policies;
  shadow_report shadows;
  int waiting_for = 0;
};

flatbuffers::Offset<wire::ShadowPolicy> write(flatbuffers::FlatBufferBuilder& body,
                                              const shadow_report::line& line) {
  auto policy = body.CreateString(line.policy);
  wire::ShadowPolicyBuilder out(body);
  out.add_policy(policy);
  out.add_capacity_bytes(line.capacity_bytes);
  out.add_used_bytes(line.used_bytes);
  out.add_objects(line.residents);
  out.add_bookkeeping_bytes(line.bookkeeping_bytes);
  out.add_requests(line.counts.requests);
  out.add_asked(line.counts.asked);
  out.add_hits(line.counts.hits);
  out.add_asked_bytes(line.counts.asked_bytes);
  out.add_hit_bytes(line.counts.hit_bytes);
  out.add_evictions(line.counts.evicted);
  return out.Finish();
}

void answer(connection& client, const connection::request& what, const policies_gathered& all) {
  const group_parts& group = client.group();
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::TierPolicy>> tiers;
    for (const policies_report::tier& tier : all.policies.tiers)
      tiers.push_back(
          wire::CreateTierPolicyDirect(body, to_string(tier.kind), tier.policy.c_str(), tier.residents));
    std::vector<flatbuffers::Offset<wire::ShadowPolicy>> shadows;
    for (const shadow_report::line& line : all.shadows.lines)
      shadows.push_back(write(body, line));
    std::vector<flatbuffers::Offset<flatbuffers::String>> known;
    for (std::string_view name : eviction_policy_names())
      known.push_back(body.CreateString(name.data(), name.size()));
    return wire::CreatePoliciesAnswerDirect(body, group.name.c_str(), &tiers, all.policies.tracked,
                                            all.policies.ghosts, all.policies.bookkeeping_bytes, &shadows,
                                            group.feed ? group.feed->skipped() : 0, &known);
  });
}

/// Both answers are handled by the connection, on one thread.
template <class Request, class Actor, class Report>
void gather(connection& client, const connection::request& what,
            const std::shared_ptr<policies_gathered>& all, const Actor& from,
            Report policies_gathered::*place) {
  ++all->waiting_for;
  client.ask(what, from, Request{}, "an actor of the trust group's policies has ended",
             [&client, what, all, place](const Report& report) {
               (*all).*place = report;
               if (--all->waiting_for == 0)
                 answer(client, what, *all);
             });
}

} // namespace

void policies(connection& client, const connection::request& what, const wire::Policies&,
              protocol::descriptor_list&) {
  auto all = std::make_shared<policies_gathered>();
  const group_parts& group = client.group();
  gather<policies_request>(client, what, all, group.policy, &policies_gathered::policies);
  if (group.feed)
    gather<shadow_request>(client, what, all, group.shadow, &policies_gathered::shadows);
}

} // namespace terrace::actors::verbs
