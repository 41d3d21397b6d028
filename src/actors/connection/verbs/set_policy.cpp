// set_policy: sets the eviction policy of a tier.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void set_policy(connection& client, const connection::request& what, const wire::SetPolicy& asked,
                protocol::descriptor_list&) {
  if (!client.may_govern(what, "a policy serves all clients of the trust group"))
    return;
  set_policy_request request;
  std::string tier = asked.tier()->str();
  for (tier_kind kind : {tier_kind::host, tier_kind::disk})
    if (tier == to_string(kind))
      request.tier = kind;
  request.policy = asked.policy()->str();
  if (request.tier == tier_kind::none) {
    client.refuse(what, {errc::not_found, "expected a tier named host or disk, got '" + tier + "'"});
    return;
  }
  client.ask(what, client.group().policy, std::move(request), "the policy's actor has ended",
             [&client, what, tier, policy = asked.policy()->str()](const set_policy_answer& done) {
               if (!client.ok(what, done.failure))
                 return;
               if (client.environment().log)
                 client.environment().log("group " + client.group().name + ": the policy of " + tier +
                                          " is " + policy + " now; it was " + done.before);
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 return wire::CreateSetPolicyAnswerDirect(body, done.before.c_str());
               });
             });
}

} // namespace terrace::actors::verbs
