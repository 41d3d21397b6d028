#include "simulated_daemon.hpp"

#include "daemon_heap.hpp"

#include "base/random_id.hpp"
#include "daemon/serve.hpp"
#include "runtime/uring.hpp"

#include <stdexcept>

namespace terrace::simulation {

simulated_daemon::simulated_daemon(scheduler& events, simulated_disk& disk, const daemon_life& life)
    : events_(events), trace_(life.trace), process_(events, disk, life.seed, life.actors),
      in_force_(life.with) {
  process_.ring().set_delays(life.disk);
  process_.ring().serve_sockets(life.sockets);
  if (trace_)
    process_.actors().set_trace(trace_);
  if (life.gpus) {
    gpus_ = std::make_unique<simulated_gpus>(events_, life.seed, *life.gpus);
    gpus_->run_on(process_.sys, process_.home());
  }
  start(life);
}

void simulated_daemon::start(const daemon_life& life) {
  daemon_heap::turn turn;
  salt_entry_keys(random_entry_key_salt());
  environment env;
  env.processors = 1;
  env.state_directory = std::string(simulated_calls::folder) + "/state";
  auto* calls = simulated_calls::of_this_thread();
  calls->let_threads_work_at_once(false); // those that wait for work
  auto wired = wire_up(life.with, env, {});
  if (!wired)
    throw std::runtime_error("the daemon does not start: " + wired.error().text);
  // What they were handed runs at once from now on.
  wired->teardown->finish();
  wired->lease_ends->finish();
  wired->populator->finish();
  wired->populator = nullptr;
  calls->let_threads_work_at_once(true); // those that read an index
  wired->detached = false;
  wired->starts_processes = life.gpus.has_value();
  if (life.gpus)
    wired->devices.device.staging_bytes = life.gpus->staging_bytes;
  wired->place = wired->place_transfers = [this] { return process_.home(); };
  wired->log = [this](const std::string& line) { say("log", line); };
  wired->warn = [this](const std::string& line) {
    warnings_.push_back(line);
    say("warning", line);
  };
  wired->set_log_level = [](const std::string&) -> result<std::string> { return "info"; };
  wired->shut_down = [this] { drain(); };
  wired->ready = [](const error& why) {
    if (why.code != errc::ok)
      throw std::runtime_error("the daemon does not start: " + why.text);
  };
  wired->finished = [this](bool well) { finished_ = well; };
  supervisor_ = actors::spawn_supervisor(process_.sys, std::move(*wired));
}

simulated_daemon::~simulated_daemon() {
  drain();
  while (!ended() && step()) {
  }
  supervisor_ = nullptr;
  if (!gpus_)
    return;
  gpus_->kill();
  while (!gpus_->none() && step()) {
  }
}

void simulated_daemon::reload(const settings& changed) {
  settings merged = apply_at_run_time(in_force_, changed);
  send_changes(merged, in_force_, caf::actor_cast<caf::actor>(supervisor_));
  in_force_ = std::move(merged);
}

void simulated_daemon::drain() { caf::anon_send(supervisor_, drain_notice{}); }

void simulated_daemon::say(const char* kind, const std::string& line) {
  if (trace_)
    trace_(events_.now(), std::string(kind) + ": " + line);
}

} // namespace terrace::simulation
