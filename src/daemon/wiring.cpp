#include "daemon/serve.hpp"

#include "actors/connection/listener_actor.hpp"
#include "actors/remote/remote_store.hpp"
#include "actors/supervision/supervisor_actor.hpp"
#include "base/numeric_address.hpp"
#include "base/random_id.hpp"
#include "daemon/logging.hpp"
#include "daemon/metrics.hpp"
#include "daemon/settings_machine.hpp"
#include "daemon/settings_units.hpp"
#include "index/digest_memo.hpp"
#include "runtime/runtime_options.hpp"
#include "runtime/thread_priority.hpp"
#include "runtime/uring.hpp"
#include "runtime/workers.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace terrace {

namespace {

/// A disk tier's files: seldom enough to cost nothing, often enough that few stores are lost.
constexpr std::chrono::milliseconds look_at_files_every{2000};

/// Memory touched per step; requests are answered between steps.
constexpr uint64_t prefault_piece_bytes = 64 * mebibyte;

/// All others are counted together, so that clients cannot create unlimited series.
constexpr size_t spaces_with_series = 32;

/// What the options of every tier say. `allocator` is validated.
tier_config tier_config_of(uint64_t bytes, const std::string& allocator, const std::string& policy) {
  auto choice = *parse_allocator(allocator);
  tier_config config;
  config.bytes = bytes;
  config.allocator = choice.name;
  config.slot_bytes = choice.slot_bytes;
  config.policy = policy;
  return config;
}

demotion_mode demotion_of(const std::string& name) {
  auto found = std::find(demotion_modes.begin(), demotion_modes.end(), name);
  return static_cast<demotion_mode>(found - demotion_modes.begin()); // validated
}

group_plan plan_of(const settings& with, const group_options& group, const std::string& state_directory) {
  group_plan plan;
  plan.name = group.name;
  plan.path = with.listen[group.sockets.front()].path;
  plan.isolated = group.isolated;
  plan.device_reads = with.gpu.enabled && with.gpu.maps_arena(group.isolated);
  plan.spaces_max = with.connection.group_spaces_max;
  plan.sessions = {with.connection.sessions_group_max(), with.connection.session_bytes_group(),
                   with.connection.sessions_max(), with.connection.session_bytes()};
  plan.prompts = {with.connection.prompts_max(), with.connection.prompt_bytes()};
  auto clock = std::find(policy_options::clocks.begin(), policy_options::clocks.end(), with.policy.clock);
  plan.policy_time = static_cast<clock_source>(clock - policy_options::clocks.begin());
  plan.host = tier_config_of(group.host_bytes, with.host.allocator, with.host.policy);
  plan.host.kind = tier_kind::host;
  plan.host.free_ahead_bytes = with.host.low_watermark_bytes(group.host_bytes);
  plan.host.staging_only = with.host.staging_only;
  plan.segment_bytes = with.host.segment_bytes;
  plan.disk_files = group.disk_files;
  plan.state_directory = state_directory;
  plan.huge_pages = with.host.huge_pages;
  for (const std::string& policy : with.shadow.policies)
    for (uint32_t percent : with.shadow.capacity_percents)
      plan.shadows.push_back(
          {policy, group.host_bytes / 100 * percent + group.host_bytes % 100 * percent / 100});
  if (with.host.numa_node != "any")
    plan.numa_node = static_cast<uint32_t>(std::stoul(with.host.numa_node)); // validated
  if (with.disk.enabled() && group.disk_bytes != 0) {
    plan.disk = tier_config_of(group.disk_bytes, with.disk.allocator, with.disk.policy);
    plan.disk->kind = tier_kind::disk;
    auto mismatch =
        std::find(disk_options::mismatches.begin(), disk_options::mismatches.end(), with.disk.on_mismatch);
    plan.on_mismatch = static_cast<mismatch_rule>(mismatch - disk_options::mismatches.begin());
    plan.direct_disk = with.gpu.reads_disk(group.isolated);
    plan.disk_io.depth = with.disk.depth;
    plan.disk_io.bytes_in_flight = with.disk.depth * plan.disk_io.piece_bytes;
    auto rule =
        std::find(disk_options::admissions.begin(), disk_options::admissions.end(), with.disk.admission);
    plan.disk->admission.rule = static_cast<admission_rule>(rule - disk_options::admissions.begin());
    plan.disk_health.stall_after = with.disk.stall_after;
    plan.disk_health.look_every = look_at_files_every;
    plan.disk->admission.budget.bytes_per_day = with.disk.write_bytes_per_day;
    plan.disk->demotion = demotion_of(with.disk.demotion);
  }
  if (with.gpu.tier_bytes != 0) {
    plan.gpu = tier_config_of(with.gpu.tier_bytes, with.disk.allocator, with.host.policy);
    plan.gpu->kind = tier_kind::gpu;
    plan.gpu_device = with.gpu.tier_device;
    plan.gpu->returning = demotion_of(with.gpu.tier_demotion);
  }
  plan.quotas = with.quotas_of(group.name);
  plan.leases = {with.lease.host_percent, with.lease.connection_percent, with.lease.host_percent};
  return plan;
}

/// Of all clients: a quarter of the mappings that the kernel grants a process by default (vm.max_map_count).
constexpr uint32_t regions_max = 16384;

/// Of one client: no machine has as much memory, and 16 such clients leave the daemon most of its address space.
constexpr uint64_t region_bytes_max = 2 * tebibyte;

/// Added to the nice value of the daemon: where processors are short, lookups and engines go before copies.
constexpr int copier_nice = 10;

result<void> open_sockets(const settings& with, const group_options& group, size_t number,
                          actors::supervisor_arguments& wired) {
  for (size_t socket : group.sockets) {
    const listen_options& listen = with.listen[socket];
    auto opened = open_listening_socket(listen.path, listen.mode);
    if (!opened)
      return tl::unexpected(opened.error());
    actors::listen_plan plan;
    plan.path = listen.path;
    plan.group = number;
    plan.socket = std::make_shared<unique_fd>(std::move(*opened));
    plan.admits = [listen, own = static_cast<uint32_t>(::geteuid())](uid_t uid, gid_t gid) {
      return listen.admits(uid, gid, own);
    };
    wired.listens.push_back(std::move(plan));
  }
  return {};
}

result<actors::listen_plan> open_redis_port(const redis_options& redis) {
  actors::listen_plan plan;
  plan.redis.emplace();
  if (!redis.password_file.empty()) {
    auto password = read_password(redis.password_file, "password_file of [[resp]]");
    if (!password)
      return tl::unexpected(password.error());
    plan.redis->password = std::move(*password);
  }
  if (redis.at_path()) {
    auto opened = open_listening_socket(redis.address, redis.mode);
    if (!opened)
      return tl::unexpected(opened.error());
    plan.path = redis.address;
    plan.socket = std::make_shared<unique_fd>(std::move(*opened));
    listen_options who;
    who.uids = redis.uids;
    who.gids = redis.gids;
    plan.admits = [who, own = static_cast<uint32_t>(::geteuid())](uid_t uid, gid_t gid) {
      return who.admits(uid, gid, own);
    };
    return plan;
  }
  auto where = *parse_loopback_address(redis.address); // validated
  auto opened = open_listening_port(where.host, where.port);
  if (!opened)
    return tl::unexpected(opened.error());
  where.port = opened->port;
  plan.path = where.text();
  plan.socket = std::make_shared<unique_fd>(std::move(opened->socket));
  return plan;
}

result<void> open_redis_sockets(const settings& with, const std::vector<group_options>& groups,
                                actors::supervisor_arguments& wired) {
  for (const redis_options& redis : with.resp) {
    auto plan = open_redis_port(redis);
    if (!plan)
      return tl::unexpected(plan.error());
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == redis.group; });
    plan->group = static_cast<size_t>(group - groups.begin()); // validated
    wired.listens.push_back(std::move(*plan));
  }
  return {};
}

/// Without the size of the tier. `options` are validated; error: a file that they name cannot be used.
result<remote_plan> plan_of(const remote_options& options) {
  auto names = read_realm(options);
  if (!names)
    return tl::unexpected(names.error());
  auto credentials = read_credentials(options);
  if (!credentials)
    return tl::unexpected(credentials.error());
  remote_plan plan{.address = *remote::parse_store_address(options.address),
                   .credentials = std::move(*credentials),
                   .names = std::move(*names)};
  plan.tier.demotion = demotion_of(options.demotion);
  plan.tier.admission.budget = *parse_write_rates(options.write_budget);
  plan.compress = options.compress;
  plan.lifetime = std::chrono::duration_cast<std::chrono::seconds>(options.lifetime);
  plan.lookup_budget =
      std::max(options.lookup_budget,
               plan.address.is_bulk() ? remote_options::lookup_budget_of_bulk : std::chrono::milliseconds(0));
  return plan;
}

result<void> plan_remotes(const settings& with, actors::supervisor_arguments& wired) {
  for (const remote_options& options : with.remote) {
    auto planned = plan_of(options);
    if (!planned)
      return tl::unexpected(planned.error());
    remote_plan plan = std::move(*planned);
    auto group = std::find_if(wired.groups.begin(), wired.groups.end(),
                              [&](const group_plan& each) { return each.name == options.group; });
    // So much it keeps in mind: the store may have what many machines have.
    plan.tier.bytes = 16 * (group->host.bytes + (group->disk ? group->disk->bytes : 0));
    plan.tier.kind = remote_tiers.at(group->remotes.size());
    group->remotes.push_back(std::move(plan)); // validated
  }
  return {};
}

result<void> serve_metrics(const settings& with, actors::supervisor_arguments& wired) {
  if (!with.metrics.enabled())
    return {};
  metrics::http_options http{.address = *parse_numeric_address(with.metrics.address)}; // validated
  if (!with.metrics.token_file.empty()) {
    auto token = read_password(with.metrics.token_file, "metrics.token_file");
    if (!token)
      return tl::unexpected(token.error());
    http.token = std::move(*token);
  }
  http.tls_file = with.metrics.tls_file;
  http.warn = log_warning;
  auto serving = metrics::exposition::serve(http);
  if (!serving && serving.error().code == errc::busy) {
    log_warning(serving.error().text + "; the daemon serves without metrics until it is restarted");
    return {};
  }
  if (!serving)
    return tl::unexpected(serving.error());
  wired.exposition = std::move(*serving);
  if (http.address.port == 0) {
    numeric_address at = http.address;
    at.port = wired.exposition->port();
    log_info("metrics are at " + at.text());
  }
  wired.exposition->add(wired.spaces);
  wired.exposition->add(wired.copier_probe, {});
  wired.exposition->add([populator = wired.populator](metrics::sample_sink& sink) {
    sink.counter("terrace_region_populated_bytes_total",
                 "Bytes of clients' regions that were mapped ahead of copies.", {},
                 static_cast<double>(populator->populated_bytes()));
    const auto answers = populator->large_pages().answers();
    for (size_t i = 0; i < answers.size(); ++i)
      sink.counter("terrace_region_large_pages_total", "Large pages that loads asked for.",
                   {{"outcome", large_page_answer_names[i]}}, static_cast<double>(answers[i]));
    sink.gauge("terrace_region_populate_waiting", "Regions that are to be mapped ahead, or are being mapped.",
               {}, static_cast<double>(populator->waiting()));
  });
  wired.exposition->add([board = wired.devices.board](metrics::sample_sink& sink) { board->collect(sink); });
  for (size_t i = 0; i < wired.groups.size(); ++i)
    expose_group(*wired.exposition, wired.groups[i], wired.probes[i], wired.regions[i],
                 std::any_of(with.resp.begin(), with.resp.end(),
                             [&](const redis_options& one) { return one.group == wired.groups[i].name; }));
  return {};
}

connection_limits limits_of(const connection_options& with) {
  connection_limits limits;
  limits.credit_requests = with.credit_requests();
  limits.credit_bytes = with.credit_bytes();
  limits.staging_bytes = with.staging_bytes;
  limits.reservations_max = with.reservations_max();
  limits.spaces_max = with.spaces_max();
  limits.region_bytes = region_bytes_max;
  limits.leases_max = with.leases_max();
  limits.lease_objects_max = with.lease_objects_max();
  limits.group_bytes = with.group_bytes;
  limits.connections_max = with.connections_max;
  limits.request_deadline = with.request_deadline;
  limits.request_deadline_max = with.request_deadline_max();
  limits.handshake_deadline = with.handshake_deadline();
  limits.lease_warn_after = with.lease_warn_after();
  return limits;
}

memo_pool_ptr memos_of(const connection_options& with, const teardown_ptr& line) {
  if (with.memo_bytes() == 0)
    return nullptr;
  return std::make_shared<memo_pool>(
      memo_pool::options{with.memo_bytes(), random_entry_key_salt().first,
                         [line](std::shared_ptr<void> memo) { line->destroy(std::move(memo)); }});
}

/// Opens the sockets first: of two daemons with one configuration, the second reports that the first is
/// running, not that a port is in use.
result<void> open_all(const settings& with, const std::string& state_directory,
                      actors::supervisor_arguments& wired) {
  auto groups = with.groups();
  auto all_regions = region_budget::make({"the daemon", 16 * region_bytes_max, regions_max});
  for (size_t i = 0; i < groups.size(); ++i) {
    wired.regions.push_back(
        region_budget::make({"the trust group " + groups[i].name, 4 * region_bytes_max}, all_regions));
    wired.groups.push_back(plan_of(with, groups[i], state_directory));
    wired.groups.back().number = i + 1;
    wired.groups.back().cost_model = wired.cost_model;
    wired.groups.back().teardown = wired.teardown;
    wired.groups.back().lease_ends = wired.lease_ends;
    wired.groups.back().memos = memos_of(with.connection, wired.teardown);
    wired.probes.emplace_back();
    wired.probes.back().paths.resize(std::max<size_t>(wired.groups[i].disk_files.size(), 1));
    for (const shadow_plan& shadow : wired.groups[i].shadows)
      wired.probes[i].shadow->add_line(shadow.policy, shadow.capacity_bytes);
    if (auto opened = open_sockets(with, groups[i], i, wired); !opened)
      return opened;
  }
  if (auto planned = plan_remotes(with, wired); !planned)
    return planned;
  if (auto opened = open_redis_sockets(with, groups, wired); !opened)
    return opened;
  return serve_metrics(with, wired);
}

} // namespace

result<actors::supervisor_arguments> wire_up(const settings& with, const environment& env,
                                             const runtime::kernel_report& kernel) {
  actors::supervisor_arguments wired;
  wired.boot = random_boot_id();
  wired.teardown = std::make_shared<teardown>();
  wired.lease_ends = std::make_shared<teardown>("lease ends");
  wired.populator = std::make_shared<region_populator>([nice = copier_nice] { runtime::be_nice(nice); });
  wired.cost_model->store(with.disk.cost_model);
  wired.limits = limits_of(with.connection);
  wired.limits.groups = with.groups().size();
  wired.limits.pin_percent = with.lease.pin_percent;
  wired.limits.session_percent = with.lease.host_percent / 3;
  wired.copiers = with.copier.threads == 0 ? env.default_copiers() : with.copier.threads;
  wired.copier_nice = copier_nice;
  wired.copier_slice_us = runtime::runtime_options().slice_us;
  wired.devices.enabled = with.gpu.enabled;
  wired.devices.device.staging_bytes = with.connection.device_staging_bytes();
  wired.devices.device.direct_bytes = with.gpu.direct_bytes;
  wired.devices.device.deadline = with.gpu.deadline;
  wired.prefault_piece_bytes = with.host.prefault ? prefault_piece_bytes : 0;
  wired.shutdown_grace = with.daemon.shutdown_grace;
  wired.ring_features.push_back(kernel.describe());
  wired.spaces = std::make_shared<metrics::space_table>(spaces_with_series);
  if (auto opened = open_all(with, env.state_path(), wired); !opened) {
    for (const actors::listen_plan& listen : wired.listens)
      ::unlink(listen.path.c_str());
    return tl::unexpected(opened.error());
  }
  return wired;
}

std::vector<std::string> describe_shrinking(const settings& with) {
  std::vector<std::string> found;
  for (const group_options& group : with.groups())
    for (std::string& line : describe_shrinking(plan_of(with, group, {})))
      found.push_back(std::move(line));
  return found;
}

void send_changes(const settings& merged, const settings& before, const caf::actor& supervisor) {
  policies_notice changed;
  if (merged.host.policy != before.host.policy)
    changed.host = merged.host.policy;
  if (merged.disk.policy != before.disk.policy)
    changed.disk = merged.disk.policy;
  caf::anon_send(supervisor, std::move(changed));
  quotas_notice quotas;
  resize_groups sizes;
  remote_budgets_notice budgets;
  for (const group_options& group : merged.groups()) {
    auto& of_group = budgets.of_groups.emplace_back();
    for (const remote_options& remote : merged.remote)
      if (remote.group == group.name)
        of_group.push_back(*parse_write_rates(remote.write_budget));
    quotas.of_groups.push_back(merged.quotas_of(group.name));
    sizes.host_bytes.push_back(group.host_bytes);
  }
  if (merged.quota != before.quota)
    caf::anon_send(supervisor, std::move(quotas));
  if (merged.remote != before.remote)
    caf::anon_send(supervisor, std::move(budgets));
  // Sent even if nothing has changed, because memory that was not available before may be available now.
  caf::anon_send(supervisor, std::move(sizes));
}

std::vector<remote_trial> try_remotes(const settings& with) {
  std::vector<remote_trial> trials;
  if (with.remote.empty() || !runtime::probe_kernel())
    return trials; // whoever looks at the kernel says what it lacks
  runtime::runtime_options options;
  options.workers = 1;
  caf::actor_system_config config;
  runtime::workers::install(config, options);
  caf::actor_system system{config};
  runtime::workers workers{system};
  if (!workers.wait_started())
    std::_Exit(failed); // workers without a ring cannot end
  caf::scoped_actor self{system};
  for (const remote_options& each : with.remote) {
    auto plan = plan_of(each);
    if (!plan)
      continue;
    auto inspector = actors::spawn_store_inspector(system, workers.place(), std::move(*plan));
    remote_trial trial{.address = each.address};
    self->request(inspector, caf::infinite, remote::store_probe_request{})
        .receive(
            [&](const remote::store_probe& probed) {
              if (!probed.works() && !probed.steps.empty()) {
                trial.step = probed.steps.back().name;
                trial.failure = probed.steps.back().failure;
              }
            },
            [&](const caf::error&) { trial.failure = "the trial has ended without an answer"; });
    trials.push_back(std::move(trial));
  }
  return trials;
}

} // namespace terrace
