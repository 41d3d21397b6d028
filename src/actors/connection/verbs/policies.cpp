// policies: the policy of each tier, and the results of shadow policies.
#include "actors/connection/verbs.hpp"
#include "connection/status_tables.hpp"

namespace terrace::actors::verbs {

namespace {

struct policies_gathered {
  policies_report policies;
  shadow_report shadows;
  int waiting_for = 0;
};

void answer(connection& client, const connection::request& what, const policies_gathered& all) {
  const group_parts& group = client.group();
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_policies(body, group.name, all.policies, all.shadows,
                          group.feed ? group.feed->skipped() : 0);
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
