// policies: the policy of each tier, and the results of shadow policies.
#include "actors/connection/verbs.hpp"
#include "base/countdown.hpp"
#include "connection/status_tables.hpp"

namespace terrace::actors::verbs {

namespace {

struct policies_gathered {
  policies_report policies;
  shadow_report shadows;
};

void answer(connection& client, const connection::request& what, const policies_gathered& all) {
  const group_parts& group = client.group();
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_policies(body, group.name, all.policies, all.shadows,
                          group.feed ? group.feed->skipped() : 0);
  });
}

} // namespace

void policies(connection& client, const connection::request& what, const wire::Policies&,
              protocol::descriptor_list&) {
  const group_parts& group = client.group();
  auto all = std::make_shared<policies_gathered>();
  auto arrived = std::make_shared<countdown>([&client, what, all] { answer(client, what, *all); });
  const char* lost = "an actor of the trust group's policies has ended";
  if (group.feed) {
    arrived->begin();
    client.ask(what, group.shadow, shadow_request{}, lost, [all, arrived](const shadow_report& report) {
      all->shadows = report;
      arrived->end();
    });
  }
  client.ask(what, group.policy, policies_request{}, lost, [all, arrived](const policies_report& report) {
    all->policies = report;
    arrived->end();
  });
}

} // namespace terrace::actors::verbs
