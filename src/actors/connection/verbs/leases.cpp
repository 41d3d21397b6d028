// leases: those of the client's trust group, for operators: an id is the right to use a lease.
#include "actors/connection/verbs.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

flatbuffers::Offset<wire::LeaseStatus> write(flatbuffers::FlatBufferBuilder& body, const lease_report& one,
                                             clock::time_point now) {
  auto id = body.CreateVector(one.id.bytes.data(), one.id.bytes.size());
  auto age = std::chrono::duration_cast<std::chrono::milliseconds>(std::max(now, one.taken) - one.taken);
  return wire::CreateLeaseStatus(body, id, one.number, static_cast<uint64_t>(one.owner),
                                 static_cast<uint32_t>(one.in), static_cast<uint32_t>(one.chunks), one.tokens,
                                 one.bytes, static_cast<uint64_t>(age.count()), one.revoked);
}

} // namespace

void leases(connection& client, const connection::request& what, const wire::Leases& asked,
            protocol::descriptor_list&) {
  if (!client.may_govern(what, "the id of a lease is the right to use it"))
    return;
  client.ask(what, client.group().group, leases_request{asked.after(), protocol::leases_listed_max},
             "the trust group's actor has ended", [&client, what](const leases_answer& answer) {
               auto now = client.environment().now();
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 std::vector<flatbuffers::Offset<wire::LeaseStatus>> listed;
                 for (const lease_report& one : answer.listed)
                   listed.push_back(write(body, one, now));
                 return wire::CreateLeasesAnswer(body, answer.count, body.CreateVector(listed));
               });
             });
}

} // namespace terrace::actors::verbs
