#include "client/conversions.hpp"

#include <algorithm>

namespace terrace::client::detail {

namespace {

boot_id to_boot(const flatbuffers::Vector<uint8_t>& bytes) {
  boot_id boot;
  std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), boot.bytes.size()), boot.bytes.begin());
  return boot;
}

std::vector<std::string> to_texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>& list) {
  std::vector<std::string> texts;
  for (const auto* text : list)
    texts.push_back(text->str());
  return texts;
}

tier_status to_tier(const wire::TierStatus& table) {
  return {
      .tier = to_text(table.tier()),
      .state = to_text(table.state()),
      .reason = to_text(table.reason()),
      .capacity_bytes = table.capacity_bytes(),
      .used_bytes = table.used_bytes(),
      .free_bytes = table.free_bytes(),
      .largest_free_run = table.largest_free_run(),
      .objects = table.objects(),
      .leased_objects = table.leased_objects(),
      .waiting_requests = table.waiting_requests(),
      .hits = table.hits(),
      .misses = table.misses(),
      .evictions = table.evictions(),
      .bytes_read = table.bytes_read(),
      .bytes_written = table.bytes_written(),
      .errors = table.errors(),
      .allocator = to_text(table.allocator()),
      .policy = to_text(table.policy()),
      .free_runs = table.free_runs(),
      .fragmentation = table.fragmentation(),
      .huge_page_bytes = table.huge_page_bytes(),
      .leaving_bytes = table.leaving_bytes(),
      .notice = to_text(table.notice()),
      .read_bytes_per_s = table.read_bytes_per_s(),
      .hit_tokens = table.hit_tokens(),
  };
}

space_status to_space(const wire::SpaceStatus& table) {
  space_status space{.space = table.space(),
                     .model = to_text(table.model()),
                     .fingerprint = digest::from({table.fingerprint()->data(), table.fingerprint()->size()}),
                     .pools = decode(table.pools()),
                     .revision = to_text(table.revision()),
                     .dtype = to_text(table.dtype()),
                     .layout = to_text(table.layout()),
                     .chunk_tokens = table.chunk_tokens(),
                     .world_size = table.world_size(),
                     .tenant = to_text(table.tenant()),
                     .salted = table.salted(),
                     .tiers = {}};
  if (table.tiers() != nullptr)
    for (const auto* tier : *table.tiers())
      space.tiers.push_back({to_text(tier->tier()), tier->objects(), tier->bytes()});
  return space;
}

group_status to_group(const wire::GroupStatus& table) {
  group_status group{.name = to_text(table.name()),
                     .path = to_text(table.path()),
                     .isolated = table.isolated(),
                     .spaces = table.spaces(),
                     .leases = table.leases(),
                     .region_bytes = table.region_bytes(),
                     .region_bytes_max = table.region_bytes_max(),
                     .sessions = table.sessions(),
                     .session_bytes = table.session_bytes(),
                     .tiers = {},
                     .open_spaces = {},
                     .idle_spaces = {},
                     .asked_tokens = table.asked_tokens(),
                     .computing_saved = std::chrono::milliseconds(table.computing_saved_ms()),
                     .saved_load = std::chrono::milliseconds(table.saved_load_ms()),
                     .tenants = {}};
  for (const auto* tier : *table.tiers())
    group.tiers.push_back(to_tier(*tier));
  if (table.open_spaces() != nullptr)
    for (const auto* space : *table.open_spaces())
      group.open_spaces.push_back(to_space(*space));
  if (table.idle_spaces() != nullptr)
    for (const auto* space : *table.idle_spaces())
      group.idle_spaces.push_back(to_space(*space));
  if (table.tenants() != nullptr)
    group.tenants = decode(*table.tenants());
  return group;
}

client_status to_client(const wire::ClientStatus& table) {
  return {
      .connection = connection_id{table.connection()},
      .name = to_text(table.name()),
      .pid = table.pid(),
      .uid = table.uid(),
      .group = to_text(table.group()),
      .state = to_text(table.state()),
      .requests_in_flight = table.requests_in_flight(),
      .regions = table.regions(),
      .region_bytes = table.region_bytes(),
      .leases = table.leases(),
      .reservations = table.reservations(),
      .requests = table.requests(),
      .age = std::chrono::milliseconds(table.age_ms()),
      .leased_bytes = table.leased_bytes(),
      .quarantined_bytes = table.quarantined_bytes(),
      .answered = table.answered(),
      .latency = std::chrono::microseconds(table.latency_us()),
  };
}

} // namespace

daemon_info decode(const wire::HelloAnswer& table) {
  return {
      .protocol_version = table.version(),
      .version = to_text(table.daemon_version()),
      .boot = to_boot(*table.boot()),
      .connection = connection_id{table.connection()},
      .group = to_text(table.group()),
      .features = to_texts(*table.features()),
      .credit_requests = std::max<uint32_t>(table.credit_requests(), 1),
      .credit_bytes = table.credit_bytes(),
      .frame_bytes_max = table.frame_bytes_max(),
  };
}

std::vector<open_pool> decode(const flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>* list) {
  std::vector<open_pool> pools;
  if (list == nullptr)
    return pools;
  for (const auto* pool : *list) {
    pools.push_back({.name = to_text(pool->name()), .object_bytes = pool->object_bytes(), .tensors = {}});
    if (pool->tensors() != nullptr)
      for (const auto* tensor : *pool->tensors())
        pools.back().tensors.push_back(
            {tensor->offset(), tensor->bytes(), tensor->first_layer(), tensor->layers()});
  }
  return pools;
}

std::optional<missing_object> decode(const wire::Missing* missing) {
  if (missing == nullptr)
    return std::nullopt;
  return missing_object{missing->chunk(), missing->pool(), missing->rank(), missing->damaged()};
}

std::vector<digest> decode_digests(const wire::LookupAnswer& table) {
  std::vector<digest> digests;
  size_t width = table.digest_width();
  if (table.digests() != nullptr && width >= digest::min_size && width <= digest::max_size)
    for (size_t at = 0; at + width <= table.digests()->size(); at += width)
      digests.push_back(digest::from({table.digests()->data() + at, width}));
  return digests;
}

load_result decode(const wire::LoadAnswer& table) {
  load_result loaded{.requested_chunks = table.requested_chunks(),
                     .delivered_chunks = table.delivered_chunks(),
                     .delivered_tokens = table.delivered_tokens(),
                     .bytes = table.bytes(),
                     .bytes_by_tier = {},
                     .first_token = table.first_token(),
                     .missing = decode(table.missing()),
                     .recompute_chunks = table.recompute_chunks()};
  if (const auto* by_tier = table.bytes_by_tier())
    loaded.bytes_by_tier.assign(by_tier->begin(), by_tier->end());
  return loaded;
}

prefetch_result decode(const wire::PrefetchAnswer& table) {
  prefetch_result done{.requested_chunks = table.requested_chunks(),
                       .found_chunks = table.found_chunks(),
                       .expected_chunks = table.expected_chunks(),
                       .delivered_chunks = table.delivered_chunks(),
                       .chunk_tokens = table.chunk_tokens(),
                       .tiers = {},
                       .end = static_cast<prefetch_end>(table.end()),
                       .first_token = table.first_token(),
                       .missing = decode(table.missing()),
                       .recompute_chunks = table.recompute_chunks()};
  if (table.tiers())
    for (const auto* each : *table.tiers())
      done.tiers.push_back({each->found(), each->expected(), each->delivered()});
  return done;
}

store_result decode(const wire::StoreAnswer& table) {
  return {table.stored_chunks(), table.present_chunks(), table.bytes()};
}

store_result decode(const wire::CommitAnswer& table) {
  return {table.stored_chunks(), table.present_chunks(), table.bytes()};
}

std::vector<tenant_status>
decode(const flatbuffers::Vector<flatbuffers::Offset<wire::TenantStatus>>& tenants) {
  std::vector<tenant_status> all;
  for (const auto* one : tenants) {
    tenant_status& tenant = all.emplace_back();
    tenant.name = to_text(one->name());
    tenant.number = one->number();
    tenant.rule = one->rule();
    for (const auto* tier : *one->tiers())
      tenant.tiers.push_back({to_text(tier->tier()), tier->used_bytes(),
                              tier->max_bytes() ? std::optional(*tier->max_bytes()) : std::nullopt,
                              tier->guaranteed_bytes(), tier->waiting_requests(), tier->refused()});
  }
  return all;
}

daemon_status decode(const wire::StatusAnswer& table) {
  daemon_status status{.version = to_text(table.daemon_version()),
                       .boot = to_boot(*table.boot()),
                       .uptime = std::chrono::milliseconds(table.uptime_ms()),
                       .workers = table.workers(),
                       .ring = to_texts(*table.ring()),
                       .groups = {},
                       .clients = {},
                       .devices = {}};
  for (const auto* group : *table.groups())
    status.groups.push_back(to_group(*group));
  for (const auto* client : *table.clients())
    status.clients.push_back(to_client(*client));
  if (table.devices())
    for (const auto* device : *table.devices())
      status.devices.push_back({to_text(device->device()), to_text(device->state()),
                                to_text(device->reason()), to_text(device->description()), device->pid(),
                                device->regions(), device->region_bytes(), device->loaded_bytes(),
                                device->stored_bytes(), device->starts(), device->failures(),
                                device->pinned_bytes(), device->direct_bytes(), device->staged_bytes(),
                                device->disk_bytes(), to_text(device->disk_reads())});
  return status;
}

policies_status decode(const wire::PoliciesAnswer& table) {
  policies_status status{.group = to_text(table.group()),
                         .tiers = {},
                         .tracked = table.tracked(),
                         .ghosts = table.ghosts(),
                         .bookkeeping_bytes = table.bookkeeping_bytes(),
                         .shadows = {},
                         .skipped_requests = table.skipped_requests(),
                         .known = to_texts(*table.known())};
  for (const auto* tier : *table.tiers())
    status.tiers.push_back({to_text(tier->tier()), to_text(tier->policy()), tier->objects()});
  for (const auto* shadow : *table.shadows())
    status.shadows.push_back({.policy = to_text(shadow->policy()),
                              .capacity_bytes = shadow->capacity_bytes(),
                              .used_bytes = shadow->used_bytes(),
                              .objects = shadow->objects(),
                              .bookkeeping_bytes = shadow->bookkeeping_bytes(),
                              .requests = shadow->requests(),
                              .asked = shadow->asked(),
                              .hits = shadow->hits(),
                              .asked_bytes = shadow->asked_bytes(),
                              .hit_bytes = shadow->hit_bytes(),
                              .evictions = shadow->evictions()});
  return status;
}

} // namespace terrace::client::detail

namespace terrace::client {

bool daemon_info::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

} // namespace terrace::client
