#include "connection/status_tables.hpp"

#include "base/tier_properties.hpp"
#include "index/space_spec.hpp"
#include "protocol/frame_builder.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace {

flatbuffers::Offset<wire::TierStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                   const tier_report& tier, uint64_t hit_tokens) {
  auto kind = body.CreateString(to_string(tier.kind));
  auto state = body.CreateString(tier.state);
  auto reason = body.CreateString(tier.reason);
  auto allocator = body.CreateString(tier.allocator);
  auto policy = body.CreateString(tier.policy);
  flatbuffers::Offset<flatbuffers::String> notice;
  if (!tier.notice.empty())
    notice = body.CreateString(tier.notice);
  wire::TierStatusBuilder out(body);
  out.add_tier(kind);
  out.add_state(state);
  out.add_reason(reason);
  out.add_allocator(allocator);
  out.add_policy(policy);
  out.add_capacity_bytes(tier.usage.capacity_bytes);
  out.add_used_bytes(tier.usage.used_bytes);
  out.add_free_bytes(tier.usage.free_bytes);
  out.add_largest_free_run(tier.usage.largest_free_run);
  out.add_free_runs(tier.usage.free_runs);
  out.add_fragmentation(tier.usage.fragmentation());
  out.add_huge_page_bytes(tier.huge_page_bytes);
  out.add_leaving_bytes(tier.leaving_bytes);
  out.add_read_bytes_per_s(tier.read_bytes_per_s);
  if (!notice.IsNull())
    out.add_notice(notice);
  out.add_objects(tier.objects);
  out.add_leased_objects(tier.held_objects);
  out.add_waiting_requests(tier.waiting);
  out.add_hits(tier.hits);
  out.add_misses(tier.misses);
  out.add_evictions(tier.evictions);
  out.add_bytes_read(tier.bytes_read);
  out.add_bytes_written(tier.bytes_written);
  out.add_errors(tier.errors);
  out.add_hit_tokens(hit_tokens);
  return out.Finish();
}

flatbuffers::Offset<wire::ClientStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                     const client_state& client,
                                                     std::chrono::steady_clock::time_point now) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  auto name = body.CreateString(client.name());
  auto group = body.CreateString(client.group);
  auto state = body.CreateString(client.state.load());
  wire::ClientStatusBuilder out(body);
  out.add_connection(static_cast<uint64_t>(client.id));
  out.add_name(name);
  out.add_pid(client.pid);
  out.add_uid(client.uid);
  out.add_group(group);
  out.add_state(state);
  out.add_requests_in_flight(client.requests_in_flight);
  out.add_regions(client.regions);
  out.add_region_bytes(client.region_bytes);
  out.add_leases(client.leases);
  out.add_reservations(client.reservations);
  out.add_requests(client.requests);
  out.add_age_ms(static_cast<uint64_t>(duration_cast<milliseconds>(now - client.since).count()));
  out.add_leased_bytes(client.leased ? client.leased->bytes() : 0);
  out.add_quarantined_bytes(client.quarantined_bytes);
  out.add_answered(client.answered);
  out.add_latency_us(client.latency_ns / 1000);
  return out.Finish();
}

namespace {

/// The name of the quota to which a space belongs, empty if there is none.
std::string tenant_of(const group_status& status, space_id space) {
  auto tenant = status.tenants != nullptr ? status.tenants->tenant_of(space) : std::nullopt;
  auto terms =
      tenant && *tenant != tenant_id{} ? status.tenants->terms_of(*tenant, memory_tier) : std::nullopt;
  if (!terms)
    return {};
  return terms->number == 0 ? terms->name : terms->name + "#" + std::to_string(terms->number);
}

} // namespace

flatbuffers::Offset<wire::SpaceStatus> write_status(flatbuffers::FlatBufferBuilder& body,
                                                    const group_status& status, space_id space,
                                                    const digest& fingerprint, const space_spec* spec) {
  std::vector<flatbuffers::Offset<wire::SpaceTier>> shares;
  for (const tier_report& tier : status.tiers)
    if (auto share = tier.spaces.find(static_cast<uint32_t>(space)); share != tier.spaces.end())
      shares.push_back(wire::CreateSpaceTier(body, body.CreateString(to_string(tier.kind)),
                                             share->second.objects, share->second.bytes));
  static const space_spec unknown{.chunk_tokens = 0, .world_size = 0};
  const space_spec& shown = spec != nullptr ? *spec : unknown;
  auto model = body.CreateString(shown.model), revision = body.CreateString(shown.revision);
  auto dtype = body.CreateString(shown.dtype), layout = body.CreateString(shown.layout);
  auto tenant = body.CreateString(tenant_of(status, space));
  auto bytes = body.CreateVector(fingerprint.bytes.data(), fingerprint.bytes.size());
  auto pools = write_open_pools(body, shown);
  auto tiers = body.CreateVector(shares);
  return wire::CreateSpaceStatus(body, static_cast<uint32_t>(space), model, bytes, pools, revision, dtype,
                                 layout, shown.chunk_tokens, shown.world_size, tenant, !shown.salt.empty(),
                                 tiers);
}

namespace {

flatbuffers::Offset<wire::ShadowPolicy> write(flatbuffers::FlatBufferBuilder& body,
                                              const shadow_report::line& line) {
  auto policy = body.CreateString(line.policy);
  wire::ShadowPolicyBuilder out(body);
  out.add_policy(policy);
  out.add_capacity_bytes(line.capacity_bytes);
  out.add_used_bytes(line.used_bytes);
  out.add_objects(line.residents);
  out.add_bookkeeping_bytes(line.bookkeeping_bytes);
  out.add_requests(line.counts.requests);
  out.add_asked(line.counts.asked);
  out.add_hits(line.counts.hits);
  out.add_asked_bytes(line.counts.asked_bytes);
  out.add_hit_bytes(line.counts.hit_bytes);
  out.add_evictions(line.counts.evicted);
  return out.Finish();
}

} // namespace

flatbuffers::Offset<wire::PoliciesAnswer> write_policies(flatbuffers::FlatBufferBuilder& body,
                                                         const std::string& group,
                                                         const policies_report& policies,
                                                         const shadow_report& shadows, uint64_t skipped) {
  std::vector<flatbuffers::Offset<wire::TierPolicy>> tiers;
  for (const policies_report::tier& tier : policies.tiers)
    tiers.push_back(
        wire::CreateTierPolicyDirect(body, to_string(tier.kind), tier.policy.c_str(), tier.residents));
  std::vector<flatbuffers::Offset<wire::ShadowPolicy>> lines;
  for (const shadow_report::line& line : shadows.lines)
    lines.push_back(write(body, line));
  std::vector<flatbuffers::Offset<flatbuffers::String>> known;
  for (std::string_view name : policies.known)
    known.push_back(body.CreateString(name.data(), name.size()));
  return wire::CreatePoliciesAnswerDirect(body, group.c_str(), &tiers, policies.tracked, policies.ghosts,
                                          policies.bookkeeping_bytes, &lines, skipped, &known);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>
write_open_pools(flatbuffers::FlatBufferBuilder& body, const space_spec& spec) {
  std::vector<flatbuffers::Offset<wire::OpenPool>> pools;
  for (const pool_spec& pool : spec.pools) {
    std::vector<wire::TensorPlace> places;
    if (auto shape = shape_of(pool, spec.chunk_tokens))
      for (size_t i = 0; i < shape->tensors().size(); ++i)
        places.emplace_back(shape->offset(i), shape->bytes_of(i), shape->tensors()[i].first_layer,
                            shape->tensors()[i].layers);
    auto name = body.CreateString(pool.name);
    auto tensors = protocol::create_structs(body, places);
    pools.push_back(wire::CreateOpenPool(body, name, pool.object_bytes, tensors));
  }
  return body.CreateVector(pools);
}

flatbuffers::Offset<wire::OpenSpaceAnswer> write_open_space_answer(flatbuffers::FlatBufferBuilder& body,
                                                                   const opened_space& space) {
  auto fingerprint = body.CreateVector(space.fingerprint.bytes.data(), space.fingerprint.bytes.size());
  auto pools = write_open_pools(body, space.spec);
  return wire::CreateOpenSpaceAnswer(body, static_cast<uint32_t>(space.id), fingerprint, pools);
}

void group_status::tier_ended(size_t place) {
  tiers[place].state = "degraded";
  tiers[place].reason = "its actor has ended";
}

void group_status::tier_service(tier_kind kind, std::string degraded, std::string notice,
                                uint64_t read_bytes_per_s) {
  for (tier_report& tier : tiers) {
    if (tier.kind != kind)
      continue;
    tier.notice = std::move(notice);
    tier.read_bytes_per_s = read_bytes_per_s;
    if (!degraded.empty()) {
      tier.state = "degraded";
      tier.reason = std::move(degraded);
    }
    return;
  }
}

void group_status::name_policies() {
  for (const policies_report::tier& each : policies.tiers)
    for (tier_report& tier : tiers)
      if (tier.kind == each.kind)
        tier.policy = each.policy;
}

void group_status::add_memory(const segmented_arena& memory) {
  tier_report& host = tiers.front();
  host.huge_page_bytes = memory.huge_page_bytes();
  host.leaving_bytes = memory.leaving_bytes();
  host.notice = memory.huge_pages_refusal();
}

namespace {

bool has_objects(const group_status& status, space_id space) {
  return std::any_of(status.tiers.begin(), status.tiers.end(), [&](const tier_report& tier) {
    return tier.spaces.contains(static_cast<uint32_t>(space));
  });
}

uint64_t milliseconds_of(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

flatbuffers::Offset<wire::GroupStatus> write_group(flatbuffers::FlatBufferBuilder& body,
                                                   const group_status& status,
                                                   const client_environment& environment) {
  auto tokens =
      environment.spaces ? environment.spaces->totals(status.name) : metrics::space_table::token_totals{};
  const region_budget* regions = environment.regions.get();
  const auto& probe = environment.client_probe;
  std::vector<flatbuffers::Offset<wire::TierStatus>> tiers;
  for (const tier_report& tier : status.tiers) {
    auto place = static_cast<size_t>(tier.kind);
    tiers.push_back(write_status(body, tier, place < tokens.hit.size() ? tokens.hit[place] : 0));
  }
  std::vector<flatbuffers::Offset<wire::SpaceStatus>> spaces, idle;
  for (const space_ptr& space : status.group.open_spaces)
    spaces.push_back(write_status(body, status, space->id, space->fingerprint, &space->spec));
  static_assert(group_report::spaces_max == protocol::status_spaces_max);
  for (const closed_space& space : status.group.closed_spaces)
    if (idle.size() < protocol::status_spaces_max && has_objects(status, space.id))
      idle.push_back(write_status(body, status, space.id, space.fingerprint, space.spec.get()));
  auto tenants = write_tenants(body, status.tiers);
  auto name = body.CreateString(status.name), path = body.CreateString(status.path);
  auto tier_list = body.CreateVector(tiers);
  auto space_list = body.CreateVector(spaces), idle_list = body.CreateVector(idle);
  return wire::CreateGroupStatus(
      body, name, path, status.isolated, static_cast<uint32_t>(status.group.spaces),
      static_cast<uint32_t>(status.group.leases), tier_list, space_list,
      regions != nullptr ? regions->bytes() : 0, regions != nullptr ? regions->bytes_max() : 0,
      status.group.sessions, status.group.session_bytes, tenants, tokens.asked, idle_list,
      probe ? milliseconds_of(probe->spared_computing()) : 0,
      probe ? milliseconds_of(probe->spared_loading()) : 0);
}

/// Returns whether the device reads disks itself. `refusal`: why no device reads the disk of this group; empty if
/// devices may.
std::string disk_reads_of(const std::string& device, const std::string& refusal) {
  return refusal.empty() || device == "off" || device.starts_with("no: ") ? device : "not all: " + refusal;
}

flatbuffers::Offset<wire::DeviceStatus> write_device(flatbuffers::FlatBufferBuilder& body,
                                                     const metrics::device_probe& device,
                                                     const std::string& disk_refusal) {
  constexpr const char* phases[] = {"idle", "starting", "ready", "degraded"};
  auto shown = device.show();
  auto name = body.CreateString(device.name());
  auto state = body.CreateString(phases[static_cast<size_t>(shown.phase)]);
  auto reason = body.CreateString(shown.reason);
  auto description = body.CreateString(shown.description);
  auto disk_reads = body.CreateString(disk_reads_of(shown.disk_reads, disk_refusal));
  return wire::CreateDeviceStatus(
      body, name, state, reason, description, shown.pid, static_cast<uint32_t>(shown.regions),
      shown.region_bytes, shown.loaded_bytes, shown.stored_bytes, shown.starts, shown.failures,
      shown.pinned_bytes, shown.direct_bytes, shown.staged_bytes, shown.disk_bytes, disk_reads);
}

} // namespace

flatbuffers::Offset<wire::StatusAnswer>
write_status_answer(flatbuffers::FlatBufferBuilder& body, const group_status& status,
                    const client_environment& environment,
                    const std::vector<std::shared_ptr<const client_state>>& clients) {
  auto group = write_group(body, status, environment);
  auto groups = body.CreateVector(&group, 1);
  std::vector<flatbuffers::Offset<wire::ClientStatus>> listed;
  for (const auto& client : clients)
    listed.push_back(write_status(body, *client, environment.now()));
  auto list = body.CreateVector(listed);
  std::vector<flatbuffers::Offset<wire::DeviceStatus>> devices;
  if (environment.devices_shown)
    for (const auto& device : environment.devices_shown->all())
      devices.push_back(write_device(body, *device, status.disk_refusal));
  auto device_list = body.CreateVector(devices);
  auto ring = body.CreateVectorOfStrings(environment.ring_features);
  auto boot = body.CreateVector(environment.boot.bytes.data(), environment.boot.bytes.size());
  auto version = body.CreateString(TERRACE_VERSION);
  auto uptime =
      std::chrono::duration_cast<std::chrono::milliseconds>(environment.now() - environment.started);
  return wire::CreateStatusAnswer(body, version, boot, static_cast<uint64_t>(uptime.count()),
                                  environment.workers, ring, groups, list, device_list);
}

namespace {

std::string text_of(const quota_part& part) {
  return std::to_string(part.value) + (part.percent ? " %" : " bytes");
}

std::optional<quota_part> part_of(flatbuffers::Optional<uint64_t> bytes,
                                  flatbuffers::Optional<uint8_t> percent) {
  if (bytes)
    return quota_part{*bytes, false};
  if (percent)
    return quota_part{*percent, true};
  return std::nullopt;
}

} // namespace

std::string quota_setting::text() const {
  std::string told = name + ": " + to_string(tier);
  if (change.unlimited)
    told += " without a bound";
  if (change.max)
    told += " at most " + text_of(*change.max);
  if (change.guaranteed)
    told += " guaranteed " + text_of(*change.guaranteed);
  return told;
}

result<quota_setting> quota_of(const wire::Quota& asked) {
  quota_setting made;
  made.name = asked.name()->str();
  std::string tier = asked.tier() ? asked.tier()->str() : std::string();
  for (tier_kind kind : governed_tiers)
    if (tier == to_string(kind))
      made.tier = kind;
  if (made.tier == nowhere)
    return fail(errc::bad_request, "expected tier \"host\" or \"disk\", got \"" + tier + "\"");
  int maxima = (asked.max_bytes() ? 1 : 0) + (asked.max_percent() ? 1 : 0) + (asked.unlimited() ? 1 : 0);
  if (maxima > 1 || (asked.guaranteed_bytes() && asked.guaranteed_percent()))
    return fail(errc::bad_request,
                "expected at most one of max_bytes, max_percent and unlimited, and at most one of "
                "guaranteed_bytes and guaranteed_percent");
  made.change.max = part_of(asked.max_bytes(), asked.max_percent());
  made.change.guaranteed = part_of(asked.guaranteed_bytes(), asked.guaranteed_percent());
  made.change.unlimited = asked.unlimited();
  if (maxima == 0 && !made.change.guaranteed)
    return fail(errc::bad_request, "expected a new max or a new guaranteed share, got neither");
  return made;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::TenantStatus>>>
write_tenants(flatbuffers::FlatBufferBuilder& body, const std::vector<tier_report>& tiers) {
  struct line {
    tenant_report report;
    std::vector<flatbuffers::Offset<wire::TenantTier>> tiers;
  };
  std::vector<line> lines; // in the order of the first tier that has the tenant
  std::map<std::pair<std::string, uint32_t>, size_t> known;
  for (const tier_report& tier : tiers)
    for (const tenant_report& one : tier.tenants) {
      auto [at, added] = known.try_emplace({one.name, one.number}, lines.size());
      if (added)
        lines.push_back({one, {}});
      auto name = body.CreateString(to_string(tier.kind));
      wire::TenantTierBuilder out(body);
      out.add_tier(name);
      out.add_used_bytes(one.used_bytes);
      if (one.max_bytes)
        out.add_max_bytes(*one.max_bytes);
      out.add_guaranteed_bytes(one.guaranteed_bytes);
      out.add_waiting_requests(one.waiting);
      out.add_refused(one.refused);
      lines[at->second].tiers.push_back(out.Finish());
    }
  std::vector<flatbuffers::Offset<wire::TenantStatus>> written;
  for (const line& one : lines)
    written.push_back(wire::CreateTenantStatusDirect(body, one.report.name.c_str(), one.report.number,
                                                     one.report.rule, &one.tiers));
  return body.CreateVector(written);
}

} // namespace terrace
