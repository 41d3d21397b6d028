#include "cli/status_report.hpp"

#include "base/digest.hpp"
#include "base/printable.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace terrace::cli {

namespace {

std::string hex(const boot_id& boot) {
  digest padded = digest::from(boot.bytes);
  return to_hex(padded, boot.bytes.size());
}

/// The texts, which may be lists themselves, as one list in lines that fit beside the names of facts.
std::vector<std::string> lines_of(const std::vector<std::string>& texts) {
  constexpr size_t width_max = 64;
  std::string all = fmt::format("{}", fmt::join(texts, ", "));
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = all.size();
    if (end - begin > width_max)
      end = std::min(std::min(all.rfind(", ", begin + width_max), all.size()), all.size());
    if (end <= begin || end == all.size()) // the rest, or a part that is longer than a line
      end = all.size() - begin > width_max ? std::min(all.find(", ", begin), all.size()) : all.size();
    lines.push_back(all.substr(begin, end == all.size() ? end - begin : end + 1 - begin));
    begin = end == all.size() ? end : end + 2;
  }
  return lines;
}

constexpr size_t name_width = 18; ///< longer names are cut in tables; --json has them whole

/// At most so many characters of a text that a client chose.
std::string cut(const std::string& text, size_t width) {
  std::string shown = printable(text);
  size_t bytes = 0, characters = 0;
  while (bytes < shown.size() && characters < width) {
    do
      ++bytes;
    while (bytes < shown.size() && (static_cast<unsigned char>(shown[bytes]) & 0xc0) == 0x80);
    ++characters;
  }
  return bytes == shown.size() ? shown : shown.substr(0, bytes) + "~";
}

std::string format_time(std::chrono::milliseconds time) {
  return format_duration(static_cast<double>(time.count()) * 1e6);
}

std::string ratio_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : format_ratio(share_of(part, whole));
}

/// Three tables, because one is wider than a terminal.
std::string format_tiers(const client::group_status& group) {
  table space({{"tier", align::left},
               {"state", align::left},
               {"capacity"},
               {"used"},
               {""},
               {"objects"},
               {"leased"},
               {"waiting"}});
  table hits({{"tier", align::left},
              {"hits"},
              {"misses"},
              {"hit ratio"},
              {"hit tokens"},
              {"of tokens"},
              {"evictions"},
              {"errors"}});
  table work({{"tier", align::left},
              {"read"},
              {"read/s"},
              {"written"},
              {"free run"},
              {"unusable"},
              {"allocator", align::left},
              {"policy", align::left}});
  for (const client::tier_status& tier : group.tiers) {
    space.add({tier.tier, tier.state, readable_bytes(tier.capacity_bytes), readable_bytes(tier.used_bytes),
               format_ratio(share_of(tier.used_bytes, tier.capacity_bytes)), format_count(tier.objects),
               format_count(tier.leased_objects), format_count(tier.waiting_requests)});
    hits.add({tier.tier, format_count(tier.hits), format_count(tier.misses),
              ratio_of(tier.hits, tier.hits + tier.misses), format_count(tier.hit_tokens),
              ratio_of(tier.hit_tokens, group.asked_tokens), format_count(tier.evictions),
              format_count(tier.errors)});
    work.add({tier.tier, readable_bytes(tier.bytes_read),
              tier.read_bytes_per_s == 0 ? "-" : readable_bytes(tier.read_bytes_per_s),
              readable_bytes(tier.bytes_written), readable_bytes(tier.largest_free_run),
              format_ratio(tier.fragmentation), tier.allocator, tier.policy});
  }
  return space.to_string() + "\n" + hits.to_string() + "\n" + work.to_string();
}

std::string format_group(const client::group_status& group) {
  std::string text =
      fmt::format("\n  group {} at {}{}\n  {}, {}, {}, {} of {} in regions\n\n", group.name,
                  group.path.empty() ? "-" : group.path, group.isolated ? ", isolated" : "",
                  format_counted(group.spaces, "open space"), format_counted(group.leases, "lease"),
                  format_counted(group.sessions, "session"), readable_bytes(group.region_bytes),
                  readable_bytes(group.region_bytes_max));
  text += format_tiers(group);
  if (group.computing_saved.count() != 0)
    text += fmt::format("  computing saved: {}, for loads that took {}\n", format_time(group.computing_saved),
                        format_time(group.saved_load));
  for (const client::tier_status& tier : group.tiers)
    if (!tier.reason.empty())
      text += fmt::format("  {} is {}: {}\n", tier.tier, tier.state, tier.reason);
  for (const client::tier_status& tier : group.tiers) {
    if (!tier.notice.empty())
      text += fmt::format("  {}: {}\n", tier.tier, tier.notice);
    if (tier.leaving_bytes != 0)
      text += fmt::format("  {}: {} of segments being removed are still used by leases or clients\n",
                          tier.tier, readable_bytes(tier.leaving_bytes));
  }
  return text;
}

std::string layers_of(const client::open_pool& pool) {
  std::string layers;
  for (const client::tensor_place& tensor : pool.tensors)
    layers += fmt::format("{}{} to {}", layers.empty() ? "" : ", ", tensor.first_layer,
                          tensor.first_layer + tensor.layers - 1);
  return layers.empty() ? "-" : layers;
}

/// A line for each space with what it has in each tier, then a line for each pool of those that are open.
std::string format_spaces(const client::group_status& group) {
  if (group.open_spaces.empty() && group.idle_spaces.empty())
    return {};
  std::vector<column> columns{{"space"},
                              {"model", align::left},
                              {"revision", align::left},
                              {"dtype", align::left},
                              {"layout", align::left},
                              {"tenant", align::left}};
  for (const client::tier_status& tier : group.tiers)
    columns.push_back({tier.tier});
  table spaces(columns), pools({{"space"},
                                {"fingerprint", align::left},
                                {"pool", align::left},
                                {"object"},
                                {"tensors"},
                                {"layers", align::left}});
  auto add = [&](const client::space_status& space) {
    constexpr size_t narrow = 8;
    bool known = space.chunk_tokens != 0 || !space.model.empty();
    std::vector<std::string> row{std::to_string(space.space),
                                 known ? cut(space.model, name_width) : "not opened yet",
                                 space.revision.empty() ? "-" : cut(space.revision, narrow),
                                 known ? cut(space.dtype, narrow) : "-",
                                 known ? cut(space.layout, narrow) : "-",
                                 !space.tenant.empty() ? cut(space.tenant, narrow)
                                 : space.salted        ? "salted"
                                                       : "-"};
    for (const client::tier_status& tier : group.tiers) {
      auto share = std::find_if(space.tiers.begin(), space.tiers.end(),
                                [&](const auto& one) { return one.tier == tier.tier; });
      row.push_back(share == space.tiers.end() ? "-" : readable_bytes(share->bytes));
    }
    spaces.add(std::move(row));
    for (const client::open_pool& pool : space.pools)
      pools.add({std::to_string(space.space), to_hex(space.fingerprint, 4), cut(pool.name, name_width),
                 readable_bytes(pool.object_bytes),
                 pool.tensors.empty() ? "-" : format_count(pool.tensors.size()), layers_of(pool)});
  };
  for (const client::space_status& space : group.open_spaces)
    add(space);
  for (const client::space_status& space : group.idle_spaces)
    add(space);
  return "\n" + spaces.to_string() + (pools.empty() ? "" : "\n" + pools.to_string());
}

json space_json(const client::space_status& s) {
  json pools = json::array();
  for (const client::open_pool& pool : s.pools) {
    json tensors = json::array();
    for (const client::tensor_place& tensor : pool.tensors)
      tensors.push_back({{"offset", tensor.offset},
                         {"bytes", tensor.bytes},
                         {"first_layer", tensor.first_layer},
                         {"layers", tensor.layers}});
    pools.push_back({{"name", pool.name}, {"object_bytes", pool.object_bytes}, {"tensors", tensors}});
  }
  json tiers = json::array();
  for (const client::space_tier& tier : s.tiers)
    tiers.push_back({{"tier", tier.tier}, {"objects", tier.objects}, {"bytes", tier.bytes}});
  return {{"space", s.space},
          {"model", s.model},
          {"fingerprint", to_hex(s.fingerprint)},
          {"pools", pools},
          {"revision", s.revision},
          {"dtype", s.dtype},
          {"layout", s.layout},
          {"chunk_tokens", s.chunk_tokens},
          {"world_size", s.world_size},
          {"tenant", s.tenant},
          {"salted", s.salted},
          {"tiers", tiers}};
}

json tier_json(const client::tier_status& t) {
  return {{"tier", t.tier},
          {"state", t.state},
          {"reason", t.reason},
          {"capacity_bytes", t.capacity_bytes},
          {"used_bytes", t.used_bytes},
          {"free_bytes", t.free_bytes},
          {"largest_free_run", t.largest_free_run},
          {"objects", t.objects},
          {"leased_objects", t.leased_objects},
          {"waiting_requests", t.waiting_requests},
          {"hits", t.hits},
          {"misses", t.misses},
          {"evictions", t.evictions},
          {"bytes_read", t.bytes_read},
          {"bytes_written", t.bytes_written},
          {"errors", t.errors},
          {"allocator", t.allocator},
          {"policy", t.policy},
          {"free_runs", t.free_runs},
          {"fragmentation", t.fragmentation},
          {"huge_page_bytes", t.huge_page_bytes},
          {"leaving_bytes", t.leaving_bytes},
          {"notice", t.notice},
          {"read_bytes_per_s", t.read_bytes_per_s},
          {"hit_tokens", t.hit_tokens}};
}

} // namespace

json to_json(const client::client_status& c) {
  return {{"connection", static_cast<uint64_t>(c.connection)},
          {"name", c.name},
          {"pid", c.pid},
          {"uid", c.uid},
          {"group", c.group},
          {"state", c.state},
          {"requests_in_flight", c.requests_in_flight},
          {"regions", c.regions},
          {"region_bytes", c.region_bytes},
          {"leases", c.leases},
          {"reservations", c.reservations},
          {"requests", c.requests},
          {"age_ms", c.age.count()},
          {"leased_bytes", c.leased_bytes},
          {"quarantined_bytes", c.quarantined_bytes},
          {"answered", c.answered},
          {"latency_us", c.latency.count()}};
}

std::string format_devices(const client::daemon_status& s) {
  if (s.devices.empty())
    return {};
  table devices({{"device", align::left},
                 {"state", align::left},
                 {"pid"},
                 {"regions"},
                 {"region bytes"},
                 {"loaded"},
                 {"stored"},
                 {"pinned"},
                 {"direct"},
                 {"from disk"},
                 {"starts"},
                 {"failures"},
                 {"", align::left}});
  for (const client::device_status& d : s.devices)
    devices.add({d.device, d.state, d.pid == 0 ? "-" : std::to_string(d.pid), format_count(d.regions),
                 readable_bytes(d.region_bytes), readable_bytes(d.loaded_bytes),
                 readable_bytes(d.stored_bytes), readable_bytes(d.pinned_bytes),
                 readable_bytes(d.direct_bytes), readable_bytes(d.disk_bytes), format_count(d.starts),
                 format_count(d.failures), d.reason.empty() ? d.description : d.reason});
  std::string text = "\n" + devices.to_string();
  for (const client::device_status& d : s.devices)
    if (d.disk_reads.starts_with("no: ") || d.disk_reads.starts_with("not all: "))
      text += fmt::format("  {} reads disks itself: {}\n", d.device, d.disk_reads);
  return text;
}

std::string format_status(const client::daemon_status& s) {
  std::vector<std::pair<std::string, std::string>> facts{{"terraced", s.version},
                                                         {"boot", hex(s.boot)},
                                                         {"up", format_time(s.uptime)},
                                                         {"workers", format_count(s.workers)}};
  std::string name = "ring";
  for (const std::string& line : lines_of(s.ring.empty() ? std::vector<std::string>{"no features"} : s.ring))
    facts.emplace_back(std::exchange(name, ""), line);
  std::string text = format_facts(facts);
  for (const client::group_status& group : s.groups)
    text += format_group(group) + (group.tenants.empty() ? "" : "\n" + format_tenants(group.tenants)) +
            format_spaces(group);
  table clients({{"client"},
                 {"name", align::left},
                 {"pid"},
                 {"state", align::left},
                 {"requests"},
                 {"leases"},
                 {"region bytes"}});
  for (const client::client_status& c : s.clients)
    clients.add({std::to_string(static_cast<uint64_t>(c.connection)), cut(c.name, name_width),
                 std::to_string(c.pid), c.state, format_count(c.requests), format_count(c.leases),
                 readable_bytes(c.region_bytes)});
  if (!clients.empty())
    text.append("\n").append(clients.to_string());
  return text + format_devices(s);
}

json to_json(const client::daemon_status& s) {
  json groups = json::array(), clients = json::array(), devices = json::array();
  for (const client::group_status& group : s.groups) {
    json tiers = json::array();
    for (const client::tier_status& tier : group.tiers)
      tiers.push_back(tier_json(tier));
    json spaces = json::array(), idle = json::array();
    for (const client::space_status& space : group.open_spaces)
      spaces.push_back(space_json(space));
    for (const client::space_status& space : group.idle_spaces)
      idle.push_back(space_json(space));
    groups.push_back({{"name", group.name},
                      {"path", group.path},
                      {"isolated", group.isolated},
                      {"spaces", group.spaces},
                      {"leases", group.leases},
                      {"sessions", group.sessions},
                      {"session_bytes", group.session_bytes},
                      {"region_bytes", group.region_bytes},
                      {"region_bytes_max", group.region_bytes_max},
                      {"tiers", tiers},
                      {"asked_tokens", group.asked_tokens},
                      {"computing_saved_ms", group.computing_saved.count()},
                      {"saved_load_ms", group.saved_load.count()},
                      {"open_spaces", spaces},
                      {"idle_spaces", idle},
                      {"tenants", tenants_json(group.tenants)}});
  }
  for (const client::client_status& client : s.clients)
    clients.push_back(to_json(client));
  for (const client::device_status& device : s.devices)
    devices.push_back({{"device", device.device},
                       {"state", device.state},
                       {"reason", device.reason},
                       {"description", device.description},
                       {"pid", device.pid},
                       {"regions", device.regions},
                       {"region_bytes", device.region_bytes},
                       {"loaded_bytes", device.loaded_bytes},
                       {"stored_bytes", device.stored_bytes},
                       {"starts", device.starts},
                       {"failures", device.failures},
                       {"pinned_bytes", device.pinned_bytes},
                       {"direct_bytes", device.direct_bytes},
                       {"staged_bytes", device.staged_bytes},
                       {"disk_bytes", device.disk_bytes},
                       {"disk_reads", device.disk_reads}});
  return {{"version", s.version}, {"boot", hex(s.boot)}, {"uptime_ms", s.uptime.count()},
          {"workers", s.workers}, {"ring", s.ring},      {"groups", groups},
          {"clients", clients},   {"devices", devices}};
}

std::string format_tenants(const std::vector<client::tenant_status>& tenants) {
  if (tenants.empty())
    return {};
  table rows({{"tenant", align::left},
              {"tier", align::left},
              {"used"},
              {"max"},
              {"guaranteed"},
              {"waiting"},
              {"refused"}});
  for (const client::tenant_status& one : tenants) {
    std::string name = one.name;
    if (one.rule)
      name += " (all)";
    else if (one.number != 0)
      name += "#" + std::to_string(one.number);
    for (const client::tenant_tier& tier : one.tiers)
      rows.add({name, tier.tier, readable_bytes(tier.used_bytes),
                tier.max_bytes ? readable_bytes(*tier.max_bytes) : "-", readable_bytes(tier.guaranteed_bytes),
                format_count(tier.waiting_requests), format_count(tier.refused)});
  }
  return rows.to_string();
}

json tenants_json(const std::vector<client::tenant_status>& tenants) {
  json all = json::array();
  for (const client::tenant_status& one : tenants) {
    json tiers = json::array();
    for (const client::tenant_tier& tier : one.tiers)
      tiers.push_back({{"tier", tier.tier},
                       {"used_bytes", tier.used_bytes},
                       {"max_bytes", tier.max_bytes ? json(*tier.max_bytes) : json()},
                       {"guaranteed_bytes", tier.guaranteed_bytes},
                       {"waiting_requests", tier.waiting_requests},
                       {"refused", tier.refused}});
    all.push_back({{"name", one.name}, {"number", one.number}, {"rule", one.rule}, {"tiers", tiers}});
  }
  return all;
}

} // namespace terrace::cli
