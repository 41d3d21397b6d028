// set_policy: sets the eviction policy of a tier.
#include "actors/connection/verbs.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

task<> set_policy(client_request& request, const wire::SetPolicy& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  if (!request.may_govern("a policy serves all clients of the trust group"))
    co_return;
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

} // namespace terrace::actors::verbs
