// The calls that the daemon's code makes of the kernel outside its ring, answered by the simulation: the clocks, randomness,
// the files below `folder`, threads, and who is at the other end of a socket. The program that links this file has its own
// definitions of these functions, so the daemon's code is that of production, without a seam. They go to the kernel as usual
// unless the calling thread has a `simulated_calls`.
//
//   simulated_calls calls(events, seed);
//   calls.mount(disk);               // its directory `folder` exists
//   ... the daemon opens folder + "/terrace.extents" ...
#pragma once

#include "daemon_heap.hpp"
#include "scheduler.hpp"
#include "simulated_disk.hpp"

#include "base/unique_fd.hpp"

#include <sys/types.h>
#include <time.h>

#include <map>
#include <memory>
#include <string>

namespace terrace::simulation {

/// A process at the other end of a socket. Its sockets are bound to `name` before they connect.
struct simulated_peer {
  std::string name; ///< in the abstract namespace
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::shared_ptr<unique_fd> ends; ///< an eventfd that becomes readable when the process ends
};

class simulated_calls {
 public:
  /// Files whose paths begin with it are on the mounted disk.
  static constexpr const char* folder = "/simulated";
  /// Runs the daemon and its clients, whoever plays the seed: answers have its number, and the trace has their sizes.
  static constexpr uint32_t user = 1000;

  /// `events` has the time.
  simulated_calls(scheduler& events, uint64_t seed);
  ~simulated_calls();
  simulated_calls(const simulated_calls&) = delete;
  simulated_calls& operator=(const simulated_calls&) = delete;

  /// Descriptors of the disk that was mounted before must be closed.
  void mount(simulated_disk& disk) { disk_ = &disk; }
  /// From now on a thread that is started has done its work before its starter goes on, or not.
  void let_threads_work_at_once(bool at_once) { at_once_ = at_once; }
  void know(const simulated_peer& peer) { peers_[peer.name] = peer; }

  // ---- for the calls ----

  static simulated_calls* of_this_thread();
  static bool is_simulated(const char* path);
  static bool is_simulated(int descriptor) { return descriptor >= simulated_disk::first_descriptor; }

  bool threads_work_at_once() const { return at_once_; }
  void tell_time(clockid_t clock, timespec& time) const;
  void fill(void* to, size_t bytes);
  const simulated_peer* peer_of(int socket) const;
  /// What it does is none of the daemon's work.
  class mounted_disk {
   public:
    explicit mounted_disk(simulated_disk& disk) : disk_(disk) {}
    simulated_disk* operator->() const { return &disk_; }

   private:
    simulated_disk& disk_;
    daemon_heap::pause not_its_own_;
  };
  mounted_disk disk() { return mounted_disk(*disk_); }
  /// The position of read(2) and write(2).
  uint64_t& position(int descriptor) { return positions_[descriptor]; }
  int close(int descriptor);

 private:
  scheduler& events_;
  seeded_random random_;
  simulated_disk* disk_ = nullptr;
  bool at_once_ = false;
  std::map<std::string, simulated_peer> peers_;
  std::map<int, uint64_t> positions_;
};

} // namespace terrace::simulation
