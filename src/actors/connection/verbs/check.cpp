// check: counts everything of the client's trust group again, for operators.
#include "actors/check/check_actor.hpp"
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

void answer_check(client_request& request, const check_report& found) {
  const connection_environment& environment = request.client.environment();
  for (const std::string& one : found.differences)
    environment.log("check: " + one);
  environment.client_probe->checked(found.differences_in_all);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    auto differences = body.CreateVectorOfStrings(found.differences);
    auto left_out = body.CreateVectorOfStrings(found.left_out);
    std::vector<flatbuffers::Offset<wire::CheckReferences>> references;
    for (size_t kind = 0; kind < reference_kinds; ++kind)
      references.push_back(wire::CreateCheckReferences(body, body.CreateString(reference_names[kind]),
                                                       found.references[kind]));
    references.push_back(
        wire::CreateCheckReferences(body, body.CreateString("requests"), found.references_of_requests));
    for (auto [name, count] : {std::pair{"prompts", found.named.prompts},
                               std::pair{"tails of sessions", found.named.tails_of_sessions},
                               std::pair{"tails of prompts", found.named.tails_of_prompts},
                               std::pair{"tails of stores", found.named.tails_of_stores}})
      references.push_back(wire::CreateCheckReferences(body, body.CreateString(name), count));
    return wire::CreateCheckAnswer(body, found.differences_in_all, differences, found.objects, found.sessions,
                                   found.connections, body.CreateVector(references), found.idle, left_out);
  });
}

} // namespace

task<> check(client_request& request, const wire::Check& asked, protocol::descriptor_list&) {
  request.take_terms(asked);
  connected_client& client = request.client;
  if (!request.may_govern("a check tells of the leases and sessions of all clients"))
    co_return;
  check_job job;
  job.group = client.group_handle();
  job.clients = client.environment().clients;
  job.context = request.context;
  auto worker = spawn_check(request.actor.system());
  auto found = co_await request.ask<check_report>(worker, std::move(job), "the check's actor has ended");
  co_await request.valid(found.failure);
  answer_check(request, found);
}

} // namespace terrace::actors::verbs
