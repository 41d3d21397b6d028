// policies: the policy of each tier and what shadows would have hit. set_policy: another one for a tier.
#include "actors/connection/verbs.hpp"

#include <unistd.h>

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

/// Both answers come to the connection, which has one thread.
template <class Request, class Actor, class Report>
void gather(connection& client, const connection::request& what,
            const std::shared_ptr<policies_gathered>& all, const Actor& from,
            Report policies_gathered::*place) {
  ++all->waiting_for;
  client.self->request(from, caf::infinite, Request{})
      .then(
          [&client, what, all, place](const Report& report) {
            (*all).*place = report;
            if (--all->waiting_for == 0)
              answer(client, what, *all);
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "an actor of the trust group's policies has ended"});
          });
}

/// Whoever runs the daemon, and root: a policy is the whole group's.
bool may_govern(const connection& client) {
  uid_t uid = client.who().uid;
  return uid == 0 || uid == ::geteuid();
}

} // namespace

void policies(connection& client, const connection::request& what, protocol::frame& frame) {
  if (client.parse<wire::Policies>(frame) == nullptr)
    return;
  auto all = std::make_shared<policies_gathered>();
  const group_parts& group = client.group();
  gather<policies_request>(client, what, all, group.policy, &policies_gathered::policies);
  if (group.feed)
    gather<shadow_request>(client, what, all, group.shadow, &policies_gathered::shadows);
}

void set_policy(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* asked = client.parse<wire::SetPolicy>(frame);
  if (asked == nullptr)
    return;
  if (!may_govern(client)) {
    client.refuse(what, {errc::denied, "expected the daemon's own user or root, got user " +
                                           std::to_string(client.who().uid) +
                                           ": a policy serves all clients of the trust group"});
    return;
  }
  set_policy_request request;
  std::string tier = asked->tier()->str();
  for (tier_kind kind : {tier_kind::host, tier_kind::disk})
    if (tier == to_string(kind))
      request.tier = kind;
  request.policy = asked->policy()->str();
  if (request.tier == tier_kind::none) {
    client.refuse(what, {errc::not_found, "expected a tier named host or disk, got '" + tier + "'"});
    return;
  }
  client.self->request(client.group().policy, caf::infinite, std::move(request))
      .then(
          [&client, what, tier, policy = asked->policy()->str()](const set_policy_answer& done) {
            if (done.failure.code != errc::ok) {
              client.refuse(what, done.failure);
              return;
            }
            if (client.environment().log)
              client.environment().log("group " + client.group().name + ": the policy of " + tier + " is " +
                                       policy + " now; it was " + done.before);
            client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
              return wire::CreateSetPolicyAnswerDirect(body, done.before.c_str());
            });
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "the policy's actor has ended"});
          });
}

} // namespace terrace::actors::verbs
