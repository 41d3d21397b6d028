#include "cli/status_report.hpp"

#include "cli/table.hpp"
#include "cli/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace terrace::cli {

namespace {

uint64_t grown(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

double per_second(uint64_t count, std::chrono::nanoseconds elapsed) {
  double seconds = static_cast<double>(elapsed.count()) * 1e-9;
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

/// Formats "12,031/s"; below ten with a decimal.
std::string format_per_second(uint64_t count, std::chrono::nanoseconds elapsed) {
  double rate = per_second(count, elapsed);
  if (rate < 10 && rate > 0)
    return fmt::format("{:.1f}/s", rate);
  return format_count(static_cast<uint64_t>(rate + 0.5)) + "/s";
}

/// A client's activity between the two looks.
struct activity {
  const client::client_status* who = nullptr;
  uint64_t answered = 0;
  std::chrono::microseconds latency{}; ///< sum over its requests
  double mean_us() const {
    return answered == 0 ? 0 : static_cast<double>(latency.count()) / static_cast<double>(answered);
  }
};

std::string format_mean(uint64_t answered, std::chrono::microseconds latency) {
  if (answered == 0)
    return "-";
  return format_duration(static_cast<double>(latency.count()) * 1e3 / static_cast<double>(answered));
}

std::vector<activity> activities(const client::daemon_status& before, const client::daemon_status& now) {
  std::map<connection_id, const client::client_status*> earlier;
  for (const client::client_status& one : before.clients)
    earlier[one.connection] = &one;
  std::vector<activity> all;
  for (const client::client_status& one : now.clients) {
    auto was = earlier.find(one.connection);
    activity done{&one, one.answered, one.latency};
    if (was != earlier.end()) {
      done.answered = grown(was->second->answered, one.answered);
      done.latency = std::max(one.latency - was->second->latency, std::chrono::microseconds(0));
    }
    all.push_back(done);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const activity& a, const activity& b) { return a.mean_us() > b.mean_us(); });
  return all;
}

const client::tier_status* tier_before(const client::daemon_status& before, const std::string& group,
                                       const std::string& tier) {
  for (const client::group_status& one : before.groups)
    if (one.name == group)
      for (const client::tier_status& each : one.tiers)
        if (each.tier == tier)
          return &each;
  return nullptr;
}

std::string format_tiers(const client::daemon_status& before, const client::group_status& group,
                         std::chrono::nanoseconds elapsed) {
  table rows({{"tier", align::left},
              {"state", align::left},
              {"used"},
              {""},
              {"leased objects"},
              {"waiting"},
              {"hits"},
              {"hit ratio"},
              {"evictions"},
              {"read"},
              {"written"}});
  for (const client::tier_status& tier : group.tiers) {
    const client::tier_status* known = tier_before(before, group.name, tier.tier);
    client::tier_status was = known != nullptr ? *known : tier;
    uint64_t hits = grown(was.hits, tier.hits), misses = grown(was.misses, tier.misses);
    auto rate = [&](uint64_t from, uint64_t to) { return format_rate(per_second(grown(from, to), elapsed)); };
    rows.add({tier.tier, tier.state, readable_bytes(tier.used_bytes),
              format_ratio(share_of(tier.used_bytes, tier.capacity_bytes)), format_count(tier.leased_objects),
              format_count(tier.waiting_requests), format_per_second(hits, elapsed),
              hits + misses == 0 ? "-" : format_ratio(share_of(hits, hits + misses)),
              format_per_second(grown(was.evictions, tier.evictions), elapsed),
              rate(was.bytes_read, tier.bytes_read), rate(was.bytes_written, tier.bytes_written)});
  }
  return rows.to_string();
}

} // namespace

std::string format_top(const client::daemon_status& before, const client::daemon_status& now,
                       std::chrono::nanoseconds elapsed, size_t clients_max) {
  auto clients = activities(before, now);
  activity all;
  uint64_t in_flight = 0;
  for (const activity& one : clients) {
    all.answered += one.answered;
    all.latency += one.latency;
    in_flight += one.who->requests_in_flight;
  }
  std::string text =
      fmt::format("terraced {}, up {}: {}, {} in flight, {}, mean latency {}\n", now.version,
                  format_duration(static_cast<double>(now.uptime.count()) * 1e6),
                  format_counted(now.clients.size(), "client"), format_counted(in_flight, "request"),
                  format_per_second(all.answered, elapsed), format_mean(all.answered, all.latency));
  for (const client::group_status& group : now.groups)
    text += fmt::format("\n  group {}: {}, {}\n{}", group.name, format_counted(group.leases, "lease"),
                        format_counted(group.sessions, "session"), format_tiers(before, group, elapsed));
  table slowest({{"slowest client", align::left},
                 {"number"},
                 {"pid"},
                 {"state", align::left},
                 {"in flight"},
                 {"requests"},
                 {"mean latency"},
                 {"leases"},
                 {"leased"},
                 {"quarantined"}});
  for (size_t i = 0; i < std::min(clients.size(), clients_max); ++i) {
    const activity& one = clients[i];
    slowest.add({one.who->name, std::to_string(static_cast<uint64_t>(one.who->connection)),
                 std::to_string(one.who->pid), one.who->state, format_count(one.who->requests_in_flight),
                 format_per_second(one.answered, elapsed), format_mean(one.answered, one.latency),
                 format_count(one.who->leases), readable_bytes(one.who->leased_bytes),
                 readable_bytes(one.who->quarantined_bytes)});
  }
  if (!slowest.empty())
    text.append("\n").append(slowest.to_string());
  return text;
}

namespace {

json tier_rates(const client::tier_status& was, const client::tier_status& tier,
                std::chrono::nanoseconds elapsed) {
  uint64_t hits = grown(was.hits, tier.hits), misses = grown(was.misses, tier.misses);
  auto rate = [&](uint64_t from, uint64_t to) { return per_second(grown(from, to), elapsed); };
  return {{"tier", tier.tier},
          {"state", tier.state},
          {"used_bytes", tier.used_bytes},
          {"capacity_bytes", tier.capacity_bytes},
          {"leased_objects", tier.leased_objects},
          {"waiting_requests", tier.waiting_requests},
          {"hits_per_second", per_second(hits, elapsed)},
          {"hit_ratio", hits + misses == 0 ? json() : json(share_of(hits, hits + misses))},
          {"evictions_per_second", rate(was.evictions, tier.evictions)},
          {"read_bytes_per_second", rate(was.bytes_read, tier.bytes_read)},
          {"written_bytes_per_second", rate(was.bytes_written, tier.bytes_written)}};
}

} // namespace

json top_json(const client::daemon_status& before, const client::daemon_status& now,
              std::chrono::nanoseconds elapsed, size_t clients_max) {
  json groups = json::array(), slowest = json::array();
  for (const client::group_status& group : now.groups) {
    json tiers = json::array();
    for (const client::tier_status& tier : group.tiers) {
      const client::tier_status* known = tier_before(before, group.name, tier.tier);
      tiers.push_back(tier_rates(known != nullptr ? *known : tier, tier, elapsed));
    }
    groups.push_back(
        {{"name", group.name}, {"leases", group.leases}, {"sessions", group.sessions}, {"tiers", tiers}});
  }
  uint64_t answered = 0, in_flight = 0;
  auto clients = activities(before, now);
  for (const activity& one : clients) {
    answered += one.answered;
    in_flight += one.who->requests_in_flight;
    if (slowest.size() < clients_max)
      slowest.push_back({{"connection", static_cast<uint64_t>(one.who->connection)},
                         {"name", one.who->name},
                         {"pid", one.who->pid},
                         {"state", one.who->state},
                         {"requests_in_flight", one.who->requests_in_flight},
                         {"requests_per_second", per_second(one.answered, elapsed)},
                         {"mean_latency_us", one.mean_us()},
                         {"leases", one.who->leases},
                         {"leased_bytes", one.who->leased_bytes},
                         {"quarantined_bytes", one.who->quarantined_bytes}});
  }
  return {{"seconds", static_cast<double>(elapsed.count()) * 1e-9},
          {"uptime_ms", now.uptime.count()},
          {"requests_in_flight", in_flight},
          {"requests_per_second", per_second(answered, elapsed)},
          {"groups", groups},
          {"clients", now.clients.size()},
          {"slowest_clients", slowest}};
}

} // namespace terrace::cli
