// status: the state of the daemon, limited to the client's trust group.
#include "actors/check/check_actor.hpp"
#include "actors/connection/verbs.hpp"
#include "base/printable.hpp"
#include "connection/client_directory.hpp"
#include "connection/status_tables.hpp"

#include <chrono>
#include <optional>

namespace terrace::actors::verbs {

namespace {

void answer(client_request& request, group_status& all) {
  connected_client& client = request.client;
  const trust_group& group = client.group();
  all.name_policies();
  auto now = std::chrono::steady_clock::now();
  for (const tier_handle& tier : group.tiers()) {
    all.tier_service(tier.kind, tier.degraded(), tier.notice(), tier.read_bytes_per_s(now));
    if (tier.direct)
      all.disk_refusal = tier.direct->refusal();
  }
  all.add_memory(*group.memory);
  all.tenants = group.tenants.get();
  auto clients = client.environment().clients->of_group(group.name);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_status_answer(body, all, client.environment(), {clients.begin(), clients.end()});
  });
}

} // namespace

task<> status(client_request& request, const wire::Status&, protocol::descriptor_list&) {
  const trust_group& group = request.client.group();
  group_status all;
  all.name = group.name;
  all.path = group.path;
  all.isolated = group.isolated;
  std::optional<tier_report> absent; // looked at now, because a disk may join while the tiers answer
  if (group.disk() == nullptr)
    absent = group.report_absent();
  auto reports = co_await request.ask_tiers<tier_report, tier_status_request>();
  all.tiers.resize(reports.size());
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i])
      all.tiers[i] = std::move(*reports[i]);
    else
      all.tier_ended(i);
  }
  if (absent) // the daemon serves without it
    all.tiers.push_back(std::move(*absent));
  policies_request policies;
  all.policies =
      co_await request.ask<policies_report>(group.policy, policies, "the policy's actor has ended");
  group_status_request counts;
  all.group = co_await request.ask<group_report>(group.group, counts, group_ended);
  answer(request, all);
}

// set_log_level: changes what the daemon logs.

task<> set_log_level(client_request& request, const wire::SetLogLevel& asked, protocol::descriptor_list&) {
  co_await request.may_govern("the log is that of the whole daemon");
  const auto& environment = request.client.environment();
  if (!environment.set_log_level) {
    request.refuse({errc::unsupported, "the log level of this daemon cannot be changed"});
    co_return;
  }
  std::string level = asked.level()->str();
  auto before = environment.set_log_level(level);
  co_await request.valid(before);
  if (environment.log)
    environment.log("daemon.log_level: \"" + *before + "\" -> \"" + level + "\", for an operator");
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateSetLogLevelAnswerDirect(body, before->c_str());
  });
}

// shutdown: ends the daemon in order, as SIGTERM does, now or once its clients have left.

task<> shutdown(client_request& request, const wire::Shutdown& asked, protocol::descriptor_list&) {
  co_await request.may_govern("the daemon serves all trust groups");
  const auto& environment = request.client.environment();
  if (!environment.shut_down) {
    request.refuse({errc::unsupported, "this daemon cannot be ended by a request"});
    co_return;
  }
  size_t clients = environment.clients->count(standing::client);
  if (environment.log)
    environment.log(asked.when_idle()
                        ? "an operator drains the daemon: it ends once its " +
                              format_counted(clients, "client") + (clients == 1 ? " has left" : " have left")
                        : std::string("an operator ends the daemon"));
  // The connections are ended later, by messages: the answer is sent before.
  if (asked.when_idle())
    environment.clients->drain(environment.shut_down);
  else
    environment.shut_down();
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateShutdownAnswer(body, static_cast<uint32_t>(clients));
  });
}

// check: counts everything of the client's trust group again, for operators.

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

task<> check(client_request& request, const wire::Check&, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a check tells of the leases and sessions of all clients");
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
