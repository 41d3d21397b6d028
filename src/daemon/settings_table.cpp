#include "daemon/settings_table.hpp"

#include "daemon/settings_units.hpp"

namespace terrace {
namespace {

constexpr bool now = true;      // SIGHUP applies it
constexpr bool restart = false; // it determines memory, files or threads that exist from the start

template <auto Section, auto Member>
option_ref in(settings& s, size_t) {
  return &(s.*Section.*Member);
}

template <auto Member>
option_ref in_socket(settings& s, size_t socket) {
  return &(s.listen.at(socket).*Member);
}

using s = settings;
using kind = option_kind;

constexpr option_spec option_specs[] = {
    {"daemon", "workers", kind::count, restart, in<&s::daemon, &daemon_options::workers>},
    {"daemon", "worker_slice_us", kind::count, restart, in<&s::daemon, &daemon_options::worker_slice_us>},
    {"daemon", "busy_poll", kind::count, restart, in<&s::daemon, &daemon_options::busy_poll>},
    {"daemon", "log_level", kind::text, now, in<&s::daemon, &daemon_options::log_level>},
    {"daemon", "log_json", kind::flag, restart, in<&s::daemon, &daemon_options::log_json>},
    {"daemon", "shutdown_grace", kind::duration, restart, in<&s::daemon, &daemon_options::shutdown_grace>},

    {"listen", "path", kind::place, restart, in_socket<&listen_options::path>},
    {"listen", "group", kind::text, restart, in_socket<&listen_options::group>},
    {"listen", "mode", kind::permissions, restart, in_socket<&listen_options::mode>},
    {"listen", "uids", kind::ids, restart, in_socket<&listen_options::uids>},
    {"listen", "gids", kind::ids, restart, in_socket<&listen_options::gids>},
    {"listen", "isolated", kind::flag, restart, in_socket<&listen_options::isolated>},
    {"listen", "write_in_place", kind::flag, restart, in_socket<&listen_options::write_in_place>},
    {"listen", "host_bytes", kind::share, restart, in_socket<&listen_options::host_bytes>},
    {"listen", "disk_bytes", kind::share, restart, in_socket<&listen_options::disk_bytes>},

    {"connection", "credit_requests", kind::count, restart,
     in<&s::connection, &connection_options::credit_requests>},
    {"connection", "credit_bytes", kind::bytes, restart,
     in<&s::connection, &connection_options::credit_bytes>},
    {"connection", "staging_bytes", kind::bytes, restart,
     in<&s::connection, &connection_options::staging_bytes>},
    {"connection", "reservations_max", kind::count, restart,
     in<&s::connection, &connection_options::reservations_max>},
    {"connection", "spaces_max", kind::count, restart, in<&s::connection, &connection_options::spaces_max>},
    {"connection", "group_spaces_max", kind::count, restart,
     in<&s::connection, &connection_options::group_spaces_max>},
    {"connection", "regions_max", kind::count, restart, in<&s::connection, &connection_options::regions_max>},
    {"connection", "region_bytes", kind::bytes, restart,
     in<&s::connection, &connection_options::region_bytes>},
    {"connection", "region_bytes_group", kind::bytes, restart,
     in<&s::connection, &connection_options::region_bytes_group>},
    {"connection", "region_bytes_total", kind::bytes, restart,
     in<&s::connection, &connection_options::region_bytes_total>},
    {"connection", "leases_max", kind::count, restart, in<&s::connection, &connection_options::leases_max>},
    {"connection", "lease_objects_max", kind::count, restart,
     in<&s::connection, &connection_options::lease_objects_max>},
    {"connection", "sessions_max", kind::count, restart,
     in<&s::connection, &connection_options::sessions_max>},
    {"connection", "session_bytes", kind::bytes, restart,
     in<&s::connection, &connection_options::session_bytes>},
    {"connection", "sessions_group_max", kind::count, restart,
     in<&s::connection, &connection_options::sessions_group_max>},
    {"connection", "session_bytes_group", kind::bytes, restart,
     in<&s::connection, &connection_options::session_bytes_group>},
    {"connection", "prompts_max", kind::count, restart, in<&s::connection, &connection_options::prompts_max>},
    {"connection", "prompt_bytes", kind::bytes, restart,
     in<&s::connection, &connection_options::prompt_bytes>},
    {"connection", "memo_bytes", kind::bytes, restart, in<&s::connection, &connection_options::memo_bytes>},
    {"connection", "group_bytes", kind::bytes, restart, in<&s::connection, &connection_options::group_bytes>},
    {"connection", "connections_max", kind::count, restart,
     in<&s::connection, &connection_options::connections_max>},
    {"connection", "request_deadline", kind::duration, restart,
     in<&s::connection, &connection_options::request_deadline>},
    {"connection", "request_deadline_max", kind::duration, restart,
     in<&s::connection, &connection_options::request_deadline_max>},
    {"connection", "handshake_deadline", kind::duration, restart,
     in<&s::connection, &connection_options::handshake_deadline>},

    {"host", "bytes", kind::bytes, now, in<&s::host, &host_options::bytes>},
    {"host", "segment_bytes", kind::bytes, restart, in<&s::host, &host_options::segment_bytes>},
    {"host", "allocator", kind::text, restart, in<&s::host, &host_options::allocator>},
    {"host", "slot_bytes", kind::bytes, restart, in<&s::host, &host_options::slot_bytes>},
    {"host", "small_max_bytes", kind::bytes, restart, in<&s::host, &host_options::small_max_bytes>},
    {"host", "small_percent", kind::count, restart, in<&s::host, &host_options::small_percent>},
    {"host", "policy", kind::text, now, in<&s::host, &host_options::policy>},
    {"host", "low_watermark_percent", kind::count, restart,
     in<&s::host, &host_options::low_watermark_percent>},
    {"host", "huge_pages", kind::flag, restart, in<&s::host, &host_options::huge_pages>},
    {"host", "numa_node", kind::text, restart, in<&s::host, &host_options::numa_node>},
    {"host", "prefault", kind::flag, restart, in<&s::host, &host_options::prefault>},
    {"host", "staging_only", kind::flag, restart, in<&s::host, &host_options::staging_only>},
    {"host", "prefault_piece_bytes", kind::bytes, restart, in<&s::host, &host_options::prefault_piece_bytes>},
    {"host", "allocation_queue", kind::count, restart, in<&s::host, &host_options::allocation_queue>},

    {"disk", "enabled", kind::flag, restart, in<&s::disk, &disk_options::enabled>},
    {"disk", "path", kind::place, restart, in<&s::disk, &disk_options::path>},
    {"disk", "paths", kind::names, restart, in<&s::disk, &disk_options::paths>},
    {"disk", "bytes", kind::bytes, restart, in<&s::disk, &disk_options::bytes>},
    {"disk", "allocator", kind::text, restart, in<&s::disk, &disk_options::allocator>},
    {"disk", "slot_bytes", kind::bytes, restart, in<&s::disk, &disk_options::slot_bytes>},
    {"disk", "small_max_bytes", kind::bytes, restart, in<&s::disk, &disk_options::small_max_bytes>},
    {"disk", "small_percent", kind::count, restart, in<&s::disk, &disk_options::small_percent>},
    {"disk", "policy", kind::text, now, in<&s::disk, &disk_options::policy>},
    {"disk", "low_watermark_percent", kind::count, restart,
     in<&s::disk, &disk_options::low_watermark_percent>},
    {"disk", "depth", kind::count, restart, in<&s::disk, &disk_options::depth>},
    {"disk", "bytes_in_flight", kind::bytes, restart, in<&s::disk, &disk_options::bytes_in_flight>},
    {"disk", "write_bytes_in_flight", kind::bytes, restart,
     in<&s::disk, &disk_options::write_bytes_in_flight>},
    {"disk", "index_object_bytes", kind::bytes, restart, in<&s::disk, &disk_options::index_object_bytes>},
    {"disk", "on_mismatch", kind::text, restart, in<&s::disk, &disk_options::on_mismatch>},
    {"disk", "admission", kind::text, restart, in<&s::disk, &disk_options::admission>},
    {"disk", "write_bytes_per_day", kind::bytes, restart, in<&s::disk, &disk_options::write_bytes_per_day>},
    {"disk", "stall_after", kind::duration, restart, in<&s::disk, &disk_options::stall_after>},
    {"disk", "write_share_percent", kind::count, restart, in<&s::disk, &disk_options::write_share_percent>},
    {"disk", "cost_model", kind::flag, now, in<&s::disk, &disk_options::cost_model>},
    {"disk", "demotion", kind::text, restart, in<&s::disk, &disk_options::demotion>},
    {"disk", "allocation_queue", kind::count, restart, in<&s::disk, &disk_options::allocation_queue>},

    {"policy", "clock", kind::text, restart, in<&s::policy, &policy_options::clock>},

    {"shadow", "policies", kind::names, restart, in<&s::shadow, &shadow_options::policies>},
    {"shadow", "capacity_percents", kind::counts, restart,
     in<&s::shadow, &shadow_options::capacity_percents>},

    {"copier", "threads", kind::count, restart, in<&s::copier, &copier_options::threads>},
    {"copier", "piece_bytes", kind::bytes, restart, in<&s::copier, &copier_options::piece_bytes>},
    {"copier", "nice", kind::count, restart, in<&s::copier, &copier_options::nice>},
    {"gpu", "enabled", kind::flag, restart, in<&s::gpu, &gpu_options::enabled>},
    {"gpu", "staging_bytes", kind::bytes, restart, in<&s::gpu, &gpu_options::staging_bytes>},
    {"gpu", "deadline", kind::duration, restart, in<&s::gpu, &gpu_options::deadline>},
    {"gpu", "map_arenas", kind::text, restart, in<&s::gpu, &gpu_options::map_arenas>},
    {"gpu", "direct_disk", kind::text, restart, in<&s::gpu, &gpu_options::direct_disk>},
    {"gpu", "direct_bytes", kind::bytes, restart, in<&s::gpu, &gpu_options::direct_bytes>},
    {"gpu", "tier_bytes", kind::bytes, restart, in<&s::gpu, &gpu_options::tier_bytes>},
    {"gpu", "tier_device", kind::text, restart, in<&s::gpu, &gpu_options::tier_device>},
    {"gpu", "tier_peers", kind::flag, restart, in<&s::gpu, &gpu_options::tier_peers>},
    {"gpu", "tier_allocator", kind::text, restart, in<&s::gpu, &gpu_options::tier_allocator>},
    {"gpu", "tier_slot_bytes", kind::bytes, restart, in<&s::gpu, &gpu_options::tier_slot_bytes>},
    {"gpu", "tier_policy", kind::text, restart, in<&s::gpu, &gpu_options::tier_policy>},
    {"gpu", "tier_demotion", kind::text, restart, in<&s::gpu, &gpu_options::tier_demotion>},

    {"lease", "warn_after", kind::duration, restart, in<&s::lease, &lease_options::warn_after>},
    {"lease", "host_percent", kind::count, restart, in<&s::lease, &lease_options::host_percent>},
    {"lease", "connection_percent", kind::count, restart, in<&s::lease, &lease_options::connection_percent>},
    {"lease", "disk_percent", kind::count, restart, in<&s::lease, &lease_options::disk_percent>},
    {"lease", "pin_percent", kind::count, restart, in<&s::lease, &lease_options::pin_percent>},
    {"lease", "session_percent", kind::count, restart, in<&s::lease, &lease_options::session_percent>},

    {"metrics", "enabled", kind::flag, restart, in<&s::metrics, &metrics_options::enabled>},
    {"metrics", "address", kind::text, restart, in<&s::metrics, &metrics_options::address>},
    {"metrics", "spaces_max", kind::count, restart, in<&s::metrics, &metrics_options::spaces_max>},
};

template <auto Member>
option_ref in_door(settings& of, size_t door) {
  return &(of.resp.at(door).*Member);
}

constexpr option_spec door_specs[] = {
    {"resp", "path", kind::text, restart, in_door<&door_options::path>},
    {"resp", "address", kind::text, restart, in_door<&door_options::address>},
    {"resp", "group", kind::text, restart, in_door<&door_options::group>},
    {"resp", "mode", kind::permissions, restart, in_door<&door_options::mode>},
    {"resp", "uids", kind::ids, restart, in_door<&door_options::uids>},
    {"resp", "gids", kind::ids, restart, in_door<&door_options::gids>},
    {"resp", "password_file", kind::text, restart, in_door<&door_options::password_file>},
    {"resp", "value_bytes_max", kind::bytes, restart, in_door<&door_options::value_bytes_max>},
};

constexpr std::string_view sections[] = {"daemon", "listen", "connection", "host",  "disk",   "policy",
                                         "shadow", "copier", "gpu",        "lease", "metrics"};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

struct formatter {
  option_kind kind;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const uint32_t* value) const {
    return kind == option_kind::permissions ? in_quotes(format_permissions(*value)) : std::to_string(*value);
  }
  std::string operator()(const uint64_t* value) const {
    return *value == 0 ? "0" : in_quotes(format_bytes(*value));
  }
  std::string operator()(const std::string* value) const { return in_quotes(*value); }
  std::string operator()(const std::chrono::milliseconds* value) const {
    return in_quotes(format_duration(*value));
  }
  std::string operator()(const std::vector<uint32_t>* value) const {
    std::string text = "[";
    for (auto id : *value)
      text += (text.size() > 1 ? ", " : "") + std::to_string(id);
    return text + "]";
  }
  std::string operator()(const std::vector<std::string>* value) const {
    std::string text = "[";
    for (const auto& name : *value)
      text += (text.size() > 1 ? ", " : "") + in_quotes(name);
    return text + "]";
  }
  std::string operator()(const std::optional<uint64_t>* value) const {
    return *value ? in_quotes(format_bytes(**value)) : "\"auto\"";
  }
};

} // namespace

std::span<const option_spec> option_table() { return option_specs; }
std::span<const option_spec> door_table() { return door_specs; }

std::span<const std::string_view> section_names() { return sections; }

std::string option_name(const option_spec& spec, size_t socket) {
  auto name = std::string(spec.section);
  if (spec.section == "listen" || spec.section == "resp")
    name += "[" + std::to_string(socket) + "]";
  return name + "." + std::string(spec.key);
}

std::string format_option(const option_spec& spec, const settings& from, size_t socket) {
  // The table returns mutable references; a formatter only reads them.
  return std::visit(formatter{spec.kind}, spec.at(const_cast<settings&>(from), socket));
}

std::string_view describe(option_kind kind) {
  switch (kind) {
    case option_kind::flag: return "true or false";
    case option_kind::count: return "a whole number that is not negative, without quotes";
    case option_kind::text: return "a string in quotes";
    case option_kind::place: return "an absolute path in quotes, or \"auto\"";
    case option_kind::bytes: return "a size: bytes as a number, or a string with a unit such as \"64MiB\"";
    case option_kind::share: return "a size such as \"64MiB\", or \"auto\"";
    case option_kind::duration: return "a duration with its unit, such as \"250ms\", \"60s\" or \"5m\"";
    case option_kind::permissions: return "an octal string of at most \"0777\", such as \"0660\"";
    case option_kind::counts: return "an array of whole numbers, such as [50, 100]";
    case option_kind::names: return "an array of strings, such as [\"lru\", \"arc\"]";
    case option_kind::ids: return "an array of user or group ids, such as [0, 1000]";
  }
  return "";
}

} // namespace terrace
