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

task<> leases(client_request& request, const wire::Leases& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  if (!request.may_govern("the id of a lease is the right to use it"))
    co_return;
  const auto& group = client.group().group;
  leases_request all{asked.after(), protocol::leases_listed_max};
  auto found = co_await request.ask<leases_answer>(group, std::move(all), group_ended);
  auto now = client.environment().now();
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::LeaseStatus>> listed;
    for (const lease_report& one : found.listed)
      listed.push_back(write(body, one, now));
    return wire::CreateLeasesAnswer(body, found.count, body.CreateVector(listed));
  });
}

} // namespace terrace::actors::verbs
