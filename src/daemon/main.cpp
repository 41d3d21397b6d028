// terraced: reads its settings, starts the actors, and waits for signals.
#include "base/random_id.hpp"
#include "daemon/logging.hpp"
#include "daemon/notify.hpp"
#include "daemon/settings_reload.hpp"
#include "daemon/settings_toml.hpp"
#include "daemon/wiring.hpp"

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <csignal>
#include <iostream>

namespace {

using namespace terrace;

struct command_line {
  std::string config;
  std::string socket;
  std::string state_dir;
  std::string metrics;
  bool check = false;
};

enum exit_code { clean = 0, failed = 1, wrong_usage = 2 };

/// The settings of the file, overridden by the command line.
result<settings> read_settings(const command_line& given, const environment& env) {
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
  std::string text;
  for (const option_problem& problem : with.validate())
    text += problem.option + ": " + problem.wrong + "; expected: " + problem.expected +
            "; fix: " + problem.fix + "\n";
  if (!text.empty())
    return fail(errc::bad_request, std::move(text));
  return with;
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

void reload(const command_line& given, const environment& env, settings& in_force,
            const actors::supervisor_actor& supervisor) {
  auto read = read_settings(given, env);
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
  auto changes = changes_at_run_time(in_force, *read);
  if (changes.empty())
    log_info("configuration reloaded: nothing has changed");
  for (const option_change& change : changes)
    log_info(change.text());
  actors::policies_notice changed;
  if (merged.host.policy != in_force.host.policy)
    changed.host = merged.host.policy;
  if (merged.disk.policy != in_force.disk.policy)
    changed.disk = merged.disk.policy;
  in_force = std::move(merged);
  set_log_level(in_force.daemon.log_level);
  caf::anon_send(supervisor, std::move(changed));
  // Also if nothing has changed: memory that was not available before may be now.
  caf::anon_send(supervisor, actors::resize_groups{host_bytes_of(in_force)});
}

int serve(settings with, const command_line& given, const environment& env) {
  unique_fd signals = block_signals();
  auto kernel = runtime::probe_kernel();
  if (!kernel) {
    std::cerr << "terraced: " << kernel.error().text << "\n";
    return failed;
  }
  start_logging(with.daemon);
  log_info("terraced " TERRACE_VERSION " on " + kernel->describe());
  auto wired = wire_up(with, env, *kernel);
  if (!wired) {
    std::cerr << "terraced: " << wired.error().text << "\n";
    return failed;
  }

  runtime::runtime_options runtime_with;
  runtime_with.workers = with.daemon.workers == 0 ? env.default_workers() : with.daemon.workers;
  runtime_with.slice_us = with.daemon.worker_slice_us;
  // The workers' callbacks outlive them: the system waits for their threads at its end.
  unique_fd over(::eventfd(0, EFD_CLOEXEC));
  std::atomic<int> code{clean};
  service_notifier notifier(env.notify_socket);
  caf::actor_system_config config;
  runtime::workers::install(config, runtime_with);
  caf::actor_system system{config};
  runtime::workers workers{system};
  if (auto started = workers.wait_started(); !started) {
    std::cerr << "terraced: " << started.error().text << "\n";
    return failed;
  }
  if (wired->exposition)
    expose_workers(*wired->exposition, workers);

  wired->log = log_info;
  wired->warn = log_warning;
  wired->ready = [&](const error& why) {
    if (why.code != errc::ok) {
      log_error("cannot start: " + why.text);
      code = failed;
      return;
    }
    for (const listen_options& listen : with.listen)
      log_info("group " + listen.group + " listens on " + listen.path);
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

  heartbeat heart(workers);
  unique_fd timer = watchdog_timer(env);
  for (;;) {
    pollfd watched[] = {{over.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}, {timer.get(), POLLIN, 0}};
    ::poll(watched, timer ? 3 : 2, -1);
    if (watched[0].revents != 0)
      break;
    if (watched[1].revents != 0) {
      signalfd_siginfo signal{};
      (void) !::read(signals.get(), &signal, sizeof signal);
      if (signal.ssi_signo == SIGHUP) {
        reload(given, env, with, supervisor);
      } else {
        log_info("draining: no new requests");
        notifier.send("STOPPING=1");
        caf::anon_send(supervisor, actors::drain_notice{});
      }
    }
    if (timer && watched[2].revents != 0) {
      uint64_t count = 0;
      (void) !::read(timer.get(), &count, sizeof count);
      if (heart.beats())
        notifier.send("WATCHDOG=1");
    }
  }
  supervisor = nullptr;
  log_info("stopped");
  return code;
}

} // namespace

int main(int argc, char** argv) {
  command_line given;
  CLI::App app{
      "terraced is the KV cache daemon for LLM inference engines: one per machine, beside the engines."};
  app.set_version_flag("--version", std::string("terraced " TERRACE_VERSION));
  app.add_option("--config", given.config, "Configuration file; without it, all options have their defaults");
  app.add_option("--socket", given.socket, "Listen on this socket, overriding the configuration");
  app.add_option("--state-dir", given.state_dir,
                 "Directory of the disk tier's files and of pending clears, overriding the configuration");
  app.add_option("--metrics", given.metrics,
                 "Serve metrics on this loopback address, such as 127.0.0.1:9464");
  app.add_flag("--check", given.check, "Check the configuration, report every mistake, and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0)
      return app.exit(problem); // --help, --version
    std::cerr << "terraced: " << problem.what() << " (see terraced --help)\n";
    return wrong_usage;
  }
  auto env = environment::current();
  if (!given.state_dir.empty())
    env.state_directory = given.state_dir;
  auto with = read_settings(given, env);
  if (!with) {
    std::cerr << with.error().text;
    return wrong_usage;
  }
  if (given.check) {
    std::cout << (given.config.empty() ? "the defaults are" : given.config + " is") << " valid\n";
    return clean;
  }
  // Large buffers are mapped one by one and go back to the kernel when they are freed. Otherwise glibc raises the
  // threshold to the size of those that were freed, up to 32 MiB, and keeps the next ones.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  salt_entry_keys(random_entry_key_salt());
  return serve(std::move(*with), given, env);
}
