// policies: the policy of each tier, and the results of shadow policies.
#include "actors/connection/verbs.hpp"
#include "connection/status_tables.hpp"

namespace terrace::actors::verbs {

task<> policies(client_request& request, const wire::Policies&, protocol::descriptor_list&) {
  constexpr const char* lost = "an actor of the trust group's policies has ended";
  const group_parts& group = request.client.group();
  shadow_report shadows;
  if (group.feed) {
    shadow_request question;
    shadows = co_await request.ask<shadow_report>(group.shadow, question, lost);
  }
  policies_request question;
  auto found = co_await request.ask<policies_report>(group.policy, question, lost);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_policies(body, group.name, found, shadows, group.feed ? group.feed->skipped() : 0);
  });
}

} // namespace terrace::actors::verbs
