// terraced: reads its settings, starts the actors, and waits for signals.
#include "base/random_id.hpp"
#include "daemon/gpu_process.hpp"
#include "daemon/limits.hpp"
#include "daemon/logging.hpp"
#include "daemon/machine_memory.hpp"
#include "daemon/notify.hpp"
#include "daemon/settings_directories.hpp"
#include "daemon/settings_reload.hpp"
#include "daemon/settings_toml.hpp"
#include "daemon/wiring.hpp"
#include "index/sha256.hpp"

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace {

using namespace terrace;

struct command_line {
  std::string config;
  std::string socket;
  std::string state_dir;
  std::string metrics;
  std::string gpu;
  bool version = false;
  bool check = false;
};

enum exit_code { clean = 0, failed = 1, wrong_usage = 2 };

std::string render(const std::vector<option_problem>& problems) {
  std::string text;
  for (const option_problem& problem : problems)
    text += problem.option + " " + problem.wrong + "; expected: " + problem.expected +
            "; fix: " + problem.fix + "\n";
  return text;
}

/// The settings of the file, overridden by the command line.
result<settings> read_settings(const command_line& given, const environment& env, bool look_at_disks = true) {
  settings with = default_settings(env);
  if (!given.config.empty()) {
    auto parsed = load_settings(given.config, env);
    if (!parsed)
      return fail(errc::bad_request, render_problems(parsed.error()));
    with = std::move(*parsed);
  }
  if (!given.socket.empty()) {
    if (with.listen.size() != 1)
      return fail(errc::bad_request, "--socket replaces the path of one [[listen]]; the configuration has " +
                                         std::to_string(with.listen.size()) + "\n");
    with.listen.front().path = given.socket;
  }
  if (!given.state_dir.empty()) {
    with.disk.path = given.state_dir;
    with.disk.paths.clear();
  }
  if (!given.metrics.empty())
    with.metrics.address = given.metrics;
  auto problems = with.validate();
  if (problems.empty() && look_at_disks)
    problems = repeated_directories(with);
  if (!problems.empty())
    return fail(errc::bad_request, render(problems));
  return with;
}

/// Makes logging what the file asks for, as far as it can be read, and says why the daemon does not start.
exit_code refuse(const command_line& given, const error& why) {
  if (!given.config.empty() && asks_for_json_log(given.config)) {
    daemon_options options;
    options.log_json = true;
    start_logging(options);
    log_fatal(why.text);
  } else {
    std::cerr << why.text;
  }
  return wrong_usage;
}

/// `--check`: also what depends on this machine.
exit_code check(const command_line& given, const settings& with, const std::string& default_directory) {
  auto missing = missing_directories(with, default_directory);
  std::cerr << render(missing);
  if (!missing.empty() && missing.size() == with.disk.directories().size())
    return wrong_usage; // with some of its paths the tier starts
  std::cout << (given.config.empty() ? "the defaults are" : given.config + " is") << " valid\n";
  return clean;
}

/// Every thread inherits the mask, so that signals are delivered only here, through a descriptor.
unique_fd block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return unique_fd(::signalfd(-1, &set, SFD_CLOEXEC));
}

/// For the end of a daemon whose ring is lost: its actors can no longer end in order.
auto end_at_once(const settings& with) {
  std::vector<std::string> sockets;
  for (const listen_options& listen : with.listen)
    sockets.push_back(listen.path);
  for (const door_options& door : with.resp)
    sockets.push_back(door.path);
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

std::vector<uint64_t> host_bytes_of(const settings& with) {
  std::vector<uint64_t> bytes;
  for (const group_options& group : with.groups())
    bytes.push_back(group.host_bytes);
  return bytes;
}

quotas_notice quotas_of(const settings& with) {
  quotas_notice notice;
  for (const group_options& group : with.groups())
    notice.of_groups.push_back(with.quotas_of(group.name));
  return notice;
}

void reload(const command_line& given, const environment& env, settings& in_force,
            const actors::supervisor_actor& supervisor, std::atomic<bool>& cost_model) {
  // A device that hangs must not stop this thread, which answers the watchdog; the paths change only at a restart.
  auto read = read_settings(given, env, false);
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
  policies_notice changed;
  if (merged.host.policy != in_force.host.policy)
    changed.host = merged.host.policy;
  if (merged.disk.policy != in_force.disk.policy)
    changed.disk = merged.disk.policy;
  bool new_quotas = merged.quota != in_force.quota;
  in_force = std::move(merged);
  (void) set_log_level(in_force.daemon.log_level); // validated
  caf::anon_send(supervisor, std::move(changed));
  if (new_quotas)
    caf::anon_send(supervisor, quotas_of(in_force));
  // Also if nothing has changed: memory that was not available before may be now.
  caf::anon_send(supervisor, resize_groups{host_bytes_of(in_force)});
}

/// An option with an empty value, as from a variable that is not set: its name; otherwise empty.
std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() != 0 && option->get_items_expected_min() > 0 && option->results().front().empty())
      return option->get_name();
  return {};
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

std::vector<std::string> lines_of_doors(const actors::supervisor_arguments& wired) {
  std::vector<std::string> lines;
  for (const actors::listen_plan& listen : wired.listens)
    if (listen.door)
      lines.push_back("group " + wired.groups[listen.group].name + " serves Redis clients on " + listen.path);
  return lines;
}

/// A process ends when the kernel has completed its operations, however long a device takes.
void warn_of_operations_in_kernel(const std::vector<watched_path>& paths) {
  for (const watched_path& path : paths)
    if (uint64_t left = path.probe->in_kernel(); left != 0)
      log_warning(path.file + ": the device has not completed " + std::to_string(left) +
                  (left == 1 ? " operation" : " operations") +
                  "; the kernel keeps the process until it has, also after SIGKILL");
}

/// Finishes a thread at the end of the scope.
template <class T>
struct finishing {
  std::shared_ptr<T> what;
  explicit finishing(std::shared_ptr<T> thread) : what(std::move(thread)) {}
  ~finishing() { what->finish(); }
};

int serve(settings with, const command_line& given, const environment& env) {
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
      .finish(); // the first digest loads algorithms for 10 ms, in which a worker would serve nobody
  log_info("terraced " TERRACE_VERSION " on " + kernel->describe());
  auto wired = wire_up(with, env, *kernel);
  if (!wired) {
    log_fatal(wired.error().text);
    return failed;
  }

  // After the system: what is still in its line may have the last reference, and would wait for its own thread.
  finishing tearing_down{wired->teardown};
  finishing populating{wired->populator}; // before the teardown, to which it may leave regions
  runtime::runtime_options runtime_with;
  runtime_with.workers = with.daemon.workers == 0 ? env.default_workers() : with.daemon.workers;
  runtime_with.slice_us = with.daemon.worker_slice_us;
  runtime_with.busy_poll_us = with.daemon.busy_poll;
  runtime_with.ring_lost = end_at_once(with);
  // The workers' callbacks outlive them: the system waits for their threads at its end.
  unique_fd over(::eventfd(0, EFD_CLOEXEC)), shut_down(::eventfd(0, EFD_CLOEXEC));
  std::atomic<int> code{clean};
  service_notifier notifier(env.notify_socket);
  caf::actor_system_config config;
  runtime::workers::install(config, runtime_with);
  caf::actor_system system{config};
  finishing ending_leases{wired->lease_ends}; // before the system: holds refer to its actors
  runtime::workers workers{system};
  if (auto started = workers.wait_started(); !started) {
    log_fatal(started.error().text);
    for (const actors::listen_plan& listen : wired->listens)
      ::unlink(listen.path.c_str());
    // Nothing has begun that must end in order, and workers without a ring cannot end their actors.
    std::_Exit(failed);
  }
  if (wired->exposition)
    expose_workers(*wired->exposition, workers);

  const auto paths = paths_of(*wired);
  const auto doors = lines_of_doors(*wired);
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
    for (const std::string& door : doors)
      log_info(door);
    notifier.send("READY=1");
  };
  wired->finished = [&](bool all_well) {
    if (!all_well)
      code = failed;
    uint64_t one = 1;
    (void) !::write(over.get(), &one, sizeof one);
  };
  wired->place = [workers]() mutable { return workers.place(); };
  wired->workers = static_cast<uint32_t>(workers.size());
  auto supervisor = actors::spawn_supervisor(system, std::move(*wired));

  auto drain = [&] {
    log_info("draining: no new requests");
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
        reload(given, env, with, supervisor, *cost_model);
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

/// Keeps glibc from adapting its thresholds. It raises that for separate mappings to the size of the largest buffer that was
/// freed, up to 32 MiB, and a flood's buffers stay resident. Setting one threshold fixes the other: with the default
/// of 128 KiB for the top of a heap every burst of requests takes its memory from the kernel anew. Buffers of frames below
/// 1 MiB, such as prompts of 200,000 tokens, come from a heap: fresh pages cost more than to hash or compare them.
void limit_heap() {
  constexpr int separate_mapping = 1 << 20, kept_at_top = 2 << 20; // bytes
  ::mallopt(M_MMAP_THRESHOLD, separate_mapping);
  ::mallopt(M_TRIM_THRESHOLD, kept_at_top); // of each thread's heap, until `malloc_trim` after a flood
}

} // namespace

int main(int argc, char** argv) {
  command_line given;
  CLI::App app{
      "terraced is the KV cache daemon for LLM inference engines: one per machine, beside the engines."};
  app.add_flag("--version", given.version, "Print the version and the GPUs that were found, and exit");
  app.add_option("--config", given.config, "Configuration file; without it, all options have their defaults");
  app.add_option("--socket", given.socket, "Listen on this socket, overriding the configuration");
  app.add_option("--state-dir", given.state_dir,
                 "Directory of the disk tier's files and of pending clears, overriding the configuration");
  app.add_option("--metrics", given.metrics,
                 "Serve metrics on this loopback address, such as 127.0.0.1:9464");
  app.add_option("--gpu", given.gpu, "")->group(""); // by the daemon itself
  app.add_flag("--check", given.check, "Check the configuration, report every mistake, and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0)
      return app.exit(problem); // --help, --version
    std::cerr << "terraced: " << problem.what() << " (see terraced --help)\n";
    return wrong_usage;
  }
  if (std::string option = empty_option(app); !option.empty()) {
    std::cerr << "terraced: " << option << " is given an empty value; name one, or leave the option out\n";
    return wrong_usage;
  }
  if (given.version) {
    std::cout << "terraced " TERRACE_VERSION "\n" << gpu_report();
    return clean;
  }
  if (!given.gpu.empty())
    return run_gpu_process(given.gpu);
  auto env = environment::current();
  const std::string default_directory = env.state_path();
  if (!given.state_dir.empty())
    env.state_directory = given.state_dir;
  auto with = read_settings(given, env);
  if (with)
    if (auto fits = fits_in_memory(with->host, memory_limits()); !fits)
      with = fail(fits.error().code, "terraced: " + fits.error().text + "\n");
  if (!with && given.check) {
    std::cerr << with.error().text;
    return wrong_usage;
  }
  if (!with)
    return refuse(given, with.error());
  if (given.check)
    return check(given, *with, default_directory);
  if (!given.state_dir.empty() && !std::filesystem::is_directory(given.state_dir))
    return refuse(given, {errc::bad_request, "--state-dir names \"" + given.state_dir +
                                                 "\"; expected: an existing directory; fix: "
                                                 "mount its device, or make the directory\n"});
  make_default_directory(*with, default_directory);
  limit_heap();
  return serve(std::move(*with), given, env);
}
