#include "daemon/serve.hpp"

#include "base/printable.hpp"
#include "base/random_id.hpp"
#include "daemon/limits.hpp"
#include "daemon/logging.hpp"
#include "daemon/metrics.hpp"
#include "daemon/notify.hpp"
#include "daemon/settings.hpp"
#include "daemon/settings_machine.hpp"
#include "index/sha256.hpp"
#include "remote/store_reports.hpp"
#include "runtime/uring.hpp"
#include "runtime/workers.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace terrace {

namespace {

/// Blocks signals before other threads start. Every thread inherits the mask, so signals arrive only here,
/// through a descriptor.
unique_fd block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return unique_fd(::signalfd(-1, &set, SFD_CLOEXEC));
}

/// Ends a daemon whose ring is lost: its actors can no longer end in order.
auto end_at_once(const settings& with) {
  std::vector<std::string> sockets;
  for (const listen_options& listen : with.listen)
    sockets.push_back(listen.path);
  for (const redis_options& redis : with.resp)
    if (redis.at_path())
      sockets.push_back(redis.address);
  return [sockets](const error& why) {
    log_error("the daemon ends without shutting down: " + why.text);
    for (const std::string& path : sockets)
      ::unlink(path.c_str());
    std::_Exit(failed);
  };
}

/// True if every worker that is awake has made progress since the last call.
class heartbeat {
 public:
  explicit heartbeat(const runtime::workers& workers) : workers_(workers), last_(workers.size()) {}
  bool beats() {
    bool all = true;
    for (size_t i = 0; i < last_.size(); ++i) {
      uint64_t now = workers_.counters(i).heartbeat.get();
      all = all && (now != last_[i] || workers_.asleep(i));
      last_[i] = now;
    }
    return all;
  }

 private:
  runtime::workers workers_;
  std::vector<uint64_t> last_;
};

/// The same for whoever asks at any time, from any thread: what was found is repeated for a second, because a worker that is
/// asked twice in a moment has not had the time to go on.
class slow_heartbeat {
 public:
  explicit slow_heartbeat(const runtime::workers& workers) : heart_(workers) {}
  bool beats() {
    std::lock_guard lock(mutex_);
    auto now = std::chrono::steady_clock::now();
    if (now - asked_ < std::chrono::seconds(1))
      return last_;
    asked_ = now;
    return last_ = heart_.beats();
  }

 private:
  std::mutex mutex_;
  heartbeat heart_;
  std::chrono::steady_clock::time_point asked_{};
  bool last_ = true;
};

unique_fd watchdog_timer(const environment& env) {
  if (!env.watchdog)
    return {};
  auto half = std::chrono::duration_cast<std::chrono::nanoseconds>(*env.watchdog) / 2;
  unique_fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  itimerspec every{};
  every.it_interval = {half.count() / 1'000'000'000, half.count() % 1'000'000'000};
  every.it_value = every.it_interval;
  ::timerfd_settime(timer.get(), 0, &every, nullptr);
  return timer;
}

/// Reads password files and certificates again. If one cannot be read, all of that store stay as they are.
remote::all_credentials_notice credentials_of(const settings& with) {
  remote::all_credentials_notice notice;
  for (const group_options& group : with.groups()) {
    auto& credentials = notice.of_groups.emplace_back();
    for (const remote_options& remote : with.remote) {
      if (remote.group != group.name)
        continue;
      auto& of_store = credentials.emplace_back();
      if (auto read = read_credentials(remote))
        of_store = std::move(*read);
      else
        log_error("the password and certificates of " +
                  std::string(long_name(remote_tiers.at(credentials.size() - 1))) + " of group " +
                  group.name + " stay as they were: " + read.error().text);
    }
  }
  return notice;
}

void reload(const settings_reader& read_again, settings& in_force, const actors::supervisor_actor& supervisor,
            std::atomic<bool>& cost_model) {
  auto read = read_again();
  if (!read) {
    log_error("the configuration was not reloaded:\n" + read.error().text);
    return;
  }
  auto merged = apply_at_run_time(in_force, *read);
  if (auto problems = merged.validate(); !problems.empty()) {
    std::string text;
    for (const option_problem& problem : problems)
      text += "\n" + problem.option + " " + problem.wrong + "; expected " + problem.expected;
    log_error("the configuration was not reloaded: without the changes that need a restart it is invalid:" +
              text);
    return;
  }
  if (auto fits = fits_in_memory(merged.host, memory_limits()); !fits) {
    log_error("the configuration was not reloaded: " + fits.error().text);
    return;
  }
  auto changes = changes_at_run_time(in_force, *read);
  cost_model = merged.disk.cost_model;
  if (changes.empty())
    log_info("configuration reloaded: nothing has changed");
  for (const option_change& change : changes)
    log_info(change.text());
  (void) set_log_level(merged.daemon.log_level); // the level was validated
  send_changes(merged, in_force, caf::actor_cast<caf::actor>(supervisor));
  in_force = std::move(merged);
  if (!in_force.remote.empty())
    caf::anon_send(supervisor, credentials_of(in_force));
}

/// The probe of each path, with the path's file.
struct watched_path {
  std::string file;
  std::shared_ptr<metrics::disk_probe> probe;
};

std::vector<watched_path> paths_of(const actors::supervisor_arguments& wired) {
  std::vector<watched_path> paths;
  for (size_t i = 0; i < wired.groups.size(); ++i)
    for (size_t path = 0; wired.groups[i].disk && path < wired.groups[i].disk_files.size(); ++path)
      paths.push_back({wired.groups[i].disk_files[path], wired.probes[i].paths[path].disk});
  return paths;
}

std::vector<std::string> lines_of_redis_ports(const actors::supervisor_arguments& wired) {
  std::vector<std::string> lines;
  for (const actors::listen_plan& listen : wired.listens)
    if (listen.redis)
      lines.push_back("group " + wired.groups[listen.group].name + " serves Redis clients on " + listen.path);
  return lines;
}

/// Warns of operations in the kernel: a process ends only when the kernel has completed them, however long a
/// device takes.
void warn_of_operations_in_kernel(const std::vector<watched_path>& paths) {
  for (const watched_path& path : paths)
    if (uint64_t left = path.probe->in_kernel(); left != 0)
      log_warning(path.file + ": the device has not completed " + format_counted(left, "operation") +
                  "; the kernel keeps the process until it has, also after SIGKILL");
}

/// Finishes a thread at the end of the scope.
template <class T>
struct finishing {
  std::shared_ptr<T> value;
  explicit finishing(std::shared_ptr<T> thread) : value(std::move(thread)) {}
  ~finishing() { value->finish(); }
};

} // namespace

exit_code serve(settings with, const settings_reader& read_again, const environment& env) {
  unique_fd signals = block_signals();
  start_logging(with.daemon);
  log_uncaught_exceptions();
  raise_limits();
  if (auto enough = check_limits(needs_of(with, env)); !enough) {
    log_fatal(enough.error().text);
    return failed;
  }
  auto kernel = runtime::probe_kernel();
  if (!kernel) {
    log_fatal(kernel.error().text);
    return failed;
  }
  salt_entry_keys(random_entry_key_salt());
  (void) sha256()
      .finish(); // the first digest loads algorithms for 10 ms, during which a worker would serve nobody
  log_info("terraced " TERRACE_VERSION " on " + kernel->describe());
  auto wired = wire_up(with, env, *kernel);
  if (!wired) {
    log_fatal(wired.error().text);
    return failed;
  }

  // Destroyed after the system, because queued work may hold the last reference to it, and would wait for its
  // own thread.
  finishing tearing_down{wired->teardown};
  finishing populating{wired->populator}; // destroyed before the teardown, to which it may leave regions
  runtime::runtime_options runtime_with;
  runtime_with.workers = with.daemon.workers == 0 ? env.default_workers() : with.daemon.workers;
  runtime_with.transfer_workers = env.transfer_workers(with.remote.size());
  runtime_with.busy_poll_us = with.daemon.busy_poll;
  runtime_with.ring_lost = end_at_once(with);
  // The workers' callbacks use these descriptors, so they outlive the workers: the system waits for their
  // threads at its end.
  unique_fd over(::eventfd(0, EFD_CLOEXEC)), shut_down(::eventfd(0, EFD_CLOEXEC));
  std::atomic<exit_code> code{clean};
  std::atomic<metrics::service_state> state{metrics::service_state::starting}; // read by the metrics' threads
  service_notifier notifier(env.notify_socket);
  caf::actor_system_config config;
  runtime::workers::install(config, runtime_with);
  caf::actor_system system{config};
  // Destroyed before the system, because holds refer to its actors.
  finishing ending_leases{wired->lease_ends};
  runtime::workers workers{system};
  if (auto started = workers.wait_started(); !started) {
    log_fatal(started.error().text);
    for (const actors::listen_plan& listen : wired->listens)
      ::unlink(listen.path.c_str());
    // Nothing that must end in order has begun, and workers without a ring cannot end their actors.
    std::_Exit(failed);
  }
  if (wired->exposition) {
    expose_workers(*wired->exposition, workers);
    wired->exposition->watch(
        [&state, clients = wired->clients] {
          return clients->drains() ? metrics::service_state::draining : state.load();
        },
        [beat = std::make_shared<slow_heartbeat>(workers)] { return beat->beats(); });
    wired->exposition->show_warnings(last_warnings);
  }

  const auto paths = paths_of(*wired);
  const auto redis_sockets = lines_of_redis_ports(*wired);
  const auto cost_model = wired->cost_model;
  wired->log = log_info;
  wired->detail = {logs_detail, log_detail};
  wired->set_log_level = set_log_level;
  wired->shut_down = [&] {
    uint64_t one = 1;
    (void) !::write(shut_down.get(), &one, sizeof one);
  };
  wired->warn = log_warning;
  wired->ready = [&](const error& why) {
    if (why.code != errc::ok) {
      log_fatal("cannot start: " + why.text);
      code = failed;
      return;
    }
    for (const listen_options& listen : with.listen)
      log_info("group " + listen.group + " listens on " + listen.path);
    for (const std::string& redis : redis_sockets)
      log_info(redis);
    state = metrics::service_state::serving;
    notifier.send("READY=1");
  };
  wired->finished = [&](bool all_well) {
    if (!all_well)
      code = failed;
    uint64_t one = 1;
    (void) !::write(over.get(), &one, sizeof one);
  };
  wired->place = [workers]() mutable { return workers.place(); };
  wired->place_transfers = [workers]() mutable { return workers.place_transfers(); };
  wired->workers = static_cast<uint32_t>(workers.serving());
  auto supervisor = actors::spawn_supervisor(system, std::move(*wired));

  auto drain = [&] {
    log_info("draining: no new requests");
    state = metrics::service_state::draining;
    notifier.send("STOPPING=1");
    caf::anon_send(supervisor, drain_notice{});
  };
  heartbeat heart(workers);
  unique_fd timer = watchdog_timer(env);
  for (;;) {
    pollfd watched[] = {{over.get(), POLLIN, 0},
                        {signals.get(), POLLIN, 0},
                        {shut_down.get(), POLLIN, 0},
                        {timer.get(), POLLIN, 0}};
    ::poll(watched, timer ? 4 : 3, -1);
    if (watched[0].revents != 0)
      break;
    if (watched[1].revents != 0) {
      signalfd_siginfo signal{};
      (void) !::read(signals.get(), &signal, sizeof signal);
      if (signal.ssi_signo == SIGHUP) {
        reload(read_again, with, supervisor, *cost_model);
      } else {
        drain();
      }
    }
    if (watched[2].revents != 0) {
      uint64_t count = 0;
      (void) !::read(shut_down.get(), &count, sizeof count);
      drain();
    }
    if (timer && watched[3].revents != 0) {
      uint64_t count = 0;
      (void) !::read(timer.get(), &count, sizeof count);
      if (heart.beats())
        notifier.send("WATCHDOG=1");
    }
  }
  supervisor = nullptr;
  warn_of_operations_in_kernel(paths);
  log_info("stopped");
  return code;
}

} // namespace terrace
