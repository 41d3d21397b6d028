// remote_status: the remote tiers of the client's trust group, for operators.
#include "actors/connection/verbs.hpp"
#include "base/printable.hpp"
#include "remote/store_reports.hpp"

namespace terrace::actors::verbs {

namespace {

constexpr const char* store_ended = "the actor of the remote store has ended";

/// Null: the request is refused.
const tier_handle* remote_tier_of(client_request& request, uint8_t number) {
  const trust_group& group = request.client.group();
  const auto kind = static_cast<tier_kind>(number);
  const tier_handle* tier = group.tier(kind);
  if (tier != nullptr && tier->store)
    return tier;
  std::string names; // of those that there are
  for (const tier_handle& each : group.tiers())
    if (each.store)
      names += (names.empty() ? "" : ", ") + std::string(to_string(each.kind));
  error why{errc::unsupported, "trust group " + group.name +
                                   " has no remote tier; add a [[remote]] section to the configuration"};
  if (!names.empty())
    why.text = "trust group " + group.name + " has no remote tier of this name; it has " + names;
  request.refuse(why);
  return nullptr;
}

flatbuffers::Offset<wire::RemoteState> write(flatbuffers::FlatBufferBuilder& body, tier_kind kind,
                                             const remote::store_status& state) {
  std::vector<flatbuffers::Offset<wire::RemoteMisses>> misses;
  for (const auto& [reason, count] : state.misses)
    misses.push_back(wire::CreateRemoteMisses(body, body.CreateString(reason.data(), reason.size()), count));
  std::vector<flatbuffers::Offset<wire::RemoteNode>> nodes;
  for (const remote::store_node& node : state.nodes)
    nodes.push_back(wire::CreateRemoteNodeDirect(body, node.address.c_str(), node.state.c_str(),
                                                 node.reason.c_str(), node.slots, node.replica));
  const auto warnings = body.CreateVectorOfStrings(state.warnings);
  auto text = [&](const std::string& said) { return body.CreateString(said); };
  const auto memory = state.memory.value_or(remote::store_memory{});
  auto address = text(state.address), prefix = text(state.prefix), name = text(state.state);
  auto reason = text(state.reason), notice = text(state.notice), policy = text(memory.policy);
  auto tier = text(to_string(kind));
  auto server = text(state.server), version = text(state.version), refused = text(state.memory_refused);
  const auto hedges =
      state.hedges ? wire::CreateRemoteHedges(body, state.hedges->sent, state.hedges->won) : 0;
  const auto replica_reads =
      state.replica_reads
          ? wire::CreateRemoteReplicaReads(body, state.replica_reads->read,
                                           state.replica_reads->asked_primary, state.replica_reads->damaged)
          : 0;
  return wire::CreateRemoteState(
      body, address, prefix, name, static_cast<uint64_t>(state.since.count()), reason, notice, warnings,
      server, version, state.told, state.answers, static_cast<uint64_t>(state.mean_answer.count()),
      static_cast<uint64_t>(state.slowest_answer.count()), state.read_bytes, state.written_bytes,
      body.CreateVector(misses), state.memory.has_value(), memory.used_bytes, memory.max_bytes, policy,
      refused, nodes.empty() ? 0 : body.CreateVector(nodes), state.encrypted, state.compressed,
      state.stored_bytes, hedges, replica_reads, state.owed_clears, tier);
}

} // namespace

task<> remote_status(client_request& request, const wire::RemoteStatus&, protocol::descriptor_list&) {
  std::vector<std::pair<tier_kind, remote::store_status>> states;
  for (const tier_handle& tier : request.client.group().tiers()) {
    if (!tier.store)
      continue;
    remote::store_status_request question;
    auto state = co_await request.ask<remote::store_status>(tier.store, question, store_ended);
    co_await request.valid(state.failure);
    states.emplace_back(tier.kind, std::move(state));
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::RemoteState>> written;
    for (const auto& [kind, state] : states)
      written.push_back(write(body, kind, state));
    return wire::CreateRemoteStatusAnswerDirect(body, &written);
  });
}

// remote_probe: asks the store once, step by step.

task<> remote_probe(client_request& request, const wire::RemoteProbe& asked, protocol::descriptor_list&) {
  request.set_terms(asked);
  co_await request.may_govern("a probe writes to the store that all clients of the trust group use");
  const tier_handle* tier = remote_tier_of(request, asked.tier());
  if (tier == nullptr)
    co_return;
  const auto& store = tier->store;
  remote::store_probe_request question;
  auto probed = co_await request.ask<remote::store_probe>(store, question, store_ended);
  co_await request.valid(probed.failure);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::RemoteStep>> steps;
    for (const remote::probe_step& step : probed.steps)
      steps.push_back(wire::CreateRemoteStepDirect(body, step.name.c_str(),
                                                   static_cast<uint64_t>(step.took.count()),
                                                   step.failure.empty() ? nullptr : step.failure.c_str()));
    return wire::CreateRemoteProbeAnswerDirect(body, probed.address.c_str(), &steps);
  });
}

// remote_sweep: removes the values that a clear has left behind in the store.

task<> remote_sweep(client_request& request, const wire::RemoteSweep& asked, protocol::descriptor_list&) {
  request.set_terms(asked);
  co_await request.may_govern("a sweep concerns all machines that share the store");
  const tier_handle* tier = remote_tier_of(request, asked.tier());
  if (tier == nullptr)
    co_return;
  const auto& store = tier->store;
  remote::store_sweep_request question{asked.dry_run(), asked.keys_per_s(), request.context};
  auto swept = co_await request.ask<remote::store_sweep>(store, std::move(question), store_ended);
  co_await request.valid(swept.failure);
  if (!asked.dry_run() && swept.stale != 0 && request.client.environment().log)
    request.client.environment().log(
        "an operator's sweep has removed " + format_counted(swept.stale, "value") + ", " +
        readable_bytes(swept.stale_bytes) + ", from the store at " + swept.address);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateRemoteSweepAnswerDirect(body, swept.address.c_str(), swept.keys, swept.current,
                                               swept.unknown, swept.stale, swept.stale_bytes);
  });
}

} // namespace terrace::actors::verbs
