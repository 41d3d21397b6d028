// set_policy: sets the eviction policy of a tier.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

void set_policy(connection& client, const connection::request& what, const wire::SetPolicy& asked,
                protocol::descriptor_list&) {
  if (!client.may_govern(what, "a policy serves all clients of the trust group"))
    return;
  auto wanted = policy_of(asked);
  if (!client.ok(what, wanted))
    return;
  client.ask(what, client.group().policy, *wanted, "the policy's actor has ended",
             [&client, what, wanted = *wanted](const set_policy_answer& done) {
               if (!client.ok(what, done.failure))
                 return;
               if (client.environment().log)
                 client.environment().log(describe_change(client.group().name, wanted, done));
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 return wire::CreateSetPolicyAnswerDirect(body, done.before.c_str());
               });
             });
}

} // namespace terrace::actors::verbs
