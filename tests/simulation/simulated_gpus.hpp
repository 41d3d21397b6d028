// The processes of GPUs that a simulated daemon starts. Their actors are those of production, at the daemon's home. Their device
// is in host memory; each of its copies is made in two events, whose times the seed chooses. A process may be killed at any event:
// what it has copied by then stays.
//
// The program that links this file has its own definitions of the functions that start, watch, kill and reap a process, so the
// daemon's code has no seam for them.
//
//   simulated_gpus gpus(events, 7, gpu_habits::draw(random));
//   gpus.run_on(system, home);
//   ... the daemon starts processes ...
//   gpus.kill();
//   while (!gpus.none() && step()) ...
#pragma once

#include "random.hpp"
#include "scheduler.hpp"

#include "base/unique_fd.hpp"
#include "runtime/home.hpp"

#include <caf/actor.hpp>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace terrace::simulation {

struct gpu_habits {
  std::chrono::nanoseconds most{
      50'000}; ///< from the begin of a copy to its middle, and from there to its end
  // Of a million copies, allocations or processes:
  uint32_t late = 0;    ///< a half of a copy, or the end of a killed process, takes up to `latest`
  uint32_t fails = 0;   ///< a copy is made in part, and fails, or the device with it
  uint32_t dies = 0;    ///< the process is killed in the middle of a copy
  uint32_t refuses = 0; ///< there is no memory
  uint32_t no_start = 0;
  std::chrono::nanoseconds latest{};
  uint64_t staging_bytes = 1 << 20; ///< between host memory and the device

  bool fail() const { return late != 0 || fails != 0 || dies != 0 || refuses != 0 || no_start != 0; }
  /// The same device, which does not fail.
  gpu_habits sound() const { return {.most = most, .staging_bytes = staging_bytes}; }
  /// Swarm testing: in half of all runs it does none of this.
  static gpu_habits draw(seeded_random& random);
};

/// A device and its process, as the kernel knows them.
struct simulated_gpu {
  scheduler& events;
  seeded_random random;
  const gpu_habits& habits;
  unique_fd ended;   ///< an eventfd that is readable once it has ended
  caf::actor link{}; ///< its first actor
  int signal = 0;    ///< that has killed it; 0: none
  int code = 0;      ///< with which it has ended by itself
  bool gone = false; ///< it has ended
  void kill();
  std::chrono::nanoseconds takes(); ///< a half of a copy, or what it still does when it is killed
};

class simulated_gpus {
 public:
  /// `events` outlives it.
  simulated_gpus(scheduler& events, uint64_t seed, const gpu_habits& habits);
  /// All processes have ended.
  ~simulated_gpus();
  simulated_gpus(const simulated_gpus&) = delete;
  simulated_gpus& operator=(const simulated_gpus&) = delete;

  /// Where the actors of processes run.
  void run_on(caf::actor_system& system, const runtime::home& home);
  /// All processes end, soon.
  void kill();
  bool none() const;
  /// From now on nothing fails.
  void recover() { habits_ = habits_.sound(); }
  uint64_t started() const { return started_; }

  // ---- for the calls ----

  static simulated_gpus* of_this_thread();
  /// The next process has a duplicate of this socket.
  void pass(int socket) { passed_ = socket; }
  /// Starts a process. Returns an error number.
  int start(pid_t& pid, const std::string& device);
  /// A process by its number or by a pidfd; null: it is none of these.
  simulated_gpu* of_pid(pid_t pid) const;
  simulated_gpu* of_descriptor(int descriptor) const;
  /// A pidfd.
  int watch(pid_t pid);

 private:
  scheduler& events_;
  seeded_random random_;
  gpu_habits habits_;
  caf::actor_system* system_ = nullptr;
  runtime::home home_;
  int passed_ = -1;
  uint64_t started_ = 0;
  pid_t last_pid_ = 2'000'000;
  std::map<pid_t, std::shared_ptr<simulated_gpu>> processes_;
  std::map<int, pid_t> watched_; ///< by pidfd
};

} // namespace terrace::simulation
