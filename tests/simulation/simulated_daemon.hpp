// The daemon as production wires it (daemon/wiring.cpp, the supervisor and all that it spawns), on one thread in virtual
// time: its files are on a simulated disk, its sockets are real ones, whose readiness a seeded scheduler decides, and the processes
// of its GPUs are simulated. Left out are the HTTP server of the metrics, and the mapping of clients' pages ahead.
//
//   simulated_calls calls(events, seed);
//   calls.mount(disk);
//   simulated_daemon daemon(events, disk, {.with = settings, .seed = 7});
//   while (...) daemon.step();
#pragma once

#include "simulated_calls.hpp"
#include "simulated_gpus.hpp"
#include "simulated_process.hpp"

#include "actors/supervision/supervisor_actor.hpp"
#include "daemon/settings.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace terrace::simulation {

struct daemon_life {
  settings with;
  uint64_t seed = 0;
  io_delays disk;
  socket_habits sockets;
  actor_delays actors;
  std::optional<gpu_habits> gpus{}; ///< none: the daemon serves no device
  actor_scheduler::trace trace;     ///< may be null
};

/// A socket, 4 MiB of host memory and 8 MiB of disk.
inline settings small_settings(const std::string& socket) {
  environment env;
  settings with = default_settings(env);
  with.listen.front().path = socket;
  with.host.bytes = 4 * mebibyte;
  with.host.segment_bytes = 2 * mebibyte;
  with.disk.path = {simulated_calls::folder};
  with.disk.bytes = 8 * mebibyte;
  with.copier.threads = 1;
  with.metrics.address.clear();
  return with;
}

class simulated_daemon {
 public:
  /// `events`, `disk` and the thread's `simulated_calls` outlive it. Throws if the daemon refuses to start.
  simulated_daemon(scheduler& events, simulated_disk& disk, const daemon_life& life);
  /// Drains the daemon. Its disk and its clients may be anything.
  ~simulated_daemon();
  simulated_daemon(const simulated_daemon&) = delete;
  simulated_daemon& operator=(const simulated_daemon&) = delete;

  /// Advances to the next event. False: nothing is left to happen.
  bool step() { return process_.step(); }
  simulated_process& process() { return process_; }

  /// As SIGHUP does. What these settings change at run time must be valid.
  void reload(const settings& changed);
  /// As SIGTERM does.
  void drain();
  bool ended() const { return finished_.has_value(); }
  /// It has ended, and no actor failed.
  bool ended_well() const { return finished_.value_or(false); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Of its GPUs; null: it has none.
  simulated_gpus* gpus() { return gpus_.get(); }

 private:
  void start(const daemon_life& life);
  void say(const char* kind, const std::string& line);

  scheduler& events_;
  actor_scheduler::trace trace_;
  simulated_process process_;
  std::unique_ptr<simulated_gpus> gpus_;
  settings in_force_;
  actors::supervisor_actor supervisor_;
  std::optional<bool> finished_;
  std::vector<std::string> warnings_;
};

} // namespace terrace::simulation
