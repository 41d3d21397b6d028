// check: counts everything of the client's trust group again, for operators.
#include "actors/check/check_actor.hpp"
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

void answer_check(connection& client, const connection::request& what, const check_report& found) {
  for (const std::string& one : found.differences)
    client.environment().log("check: " + one);
  client.environment().client_probe->checked(found.differences_in_all);
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
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

void check(connection& client, const connection::request& what, const wire::Check& asked,
           protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_govern(what, "a check tells of the leases and sessions of all clients"))
    return;
  check_job job;
  job.group = client.group_handle();
  job.clients = client.environment().clients;
  job.context = what.context;
  client.ask(what, spawn_check(client.system()), std::move(job), "the check's actor has ended",
             [&client, what](const check_report& found) {
               if (client.ok(what, found.failure))
                 answer_check(client, what, found);
             });
}

} // namespace terrace::actors::verbs
