#include "connection/group_status.hpp"

#include "connection/status_tables.hpp"
#include "group/tenant_tables.hpp"

#include <chrono>

namespace terrace {

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

flatbuffers::Offset<wire::GroupStatus> write_group(flatbuffers::FlatBufferBuilder& body,
                                                   const group_status& status, const region_budget* regions) {
  std::vector<flatbuffers::Offset<wire::TierStatus>> tiers;
  for (const tier_report& tier : status.tiers)
    tiers.push_back(write_status(body, tier));
  std::vector<flatbuffers::Offset<wire::SpaceStatus>> spaces;
  for (const space_ptr& space : status.group.open_spaces)
    spaces.push_back(write_status(body, *space));
  auto tenants = write_tenants(body, status.tiers);
  auto name = body.CreateString(status.name), path = body.CreateString(status.path);
  auto tier_list = body.CreateVector(tiers);
  auto space_list = body.CreateVector(spaces);
  return wire::CreateGroupStatus(
      body, name, path, status.isolated, static_cast<uint32_t>(status.group.spaces),
      static_cast<uint32_t>(status.group.leases), tier_list, space_list,
      regions != nullptr ? regions->bytes() : 0, regions != nullptr ? regions->bytes_max() : 0,
      status.group.sessions, status.group.session_bytes, tenants);
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
  auto group = write_group(body, status, environment.regions.get());
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

} // namespace terrace
