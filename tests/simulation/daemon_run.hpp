// A seed, played: a daemon in the simulated machine, clients of its trust groups, crashes and restarts. The seed draws its own
// configuration, sizes, faults and mix of what clients do.
//
//   daemon_run run({.bounds = {.seed = 7}});
//   run.play();
//   EXPECT_EQ(run.broken(), none);
#pragma once

#include "redis_client.hpp"
#include "run_bounds.hpp"
#include "simulated_client.hpp"
#include "simulated_daemon.hpp"
#include "simulated_store.hpp"

#include "tests/support/temporary_folder.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace::simulation {

/// How the clients of all groups but the first are.
enum class neighbours : uint8_t { as_drawn, silent, loud };

struct daemon_run_options {
  run_bounds bounds;
  neighbours others = neighbours::as_drawn;
  actor_scheduler::trace trace;
};

/// What a seed does much more often than others.
enum class hot_spot : uint8_t {
  restarts,     ///< in order, which lose nothing
  rotting,      ///< bits on the disk change
  reservations, ///< hold all memory
  clears,       ///< while objects come from the disk
  leases,       ///< hold all memory
  tails,        ///< of sessions, equal ones
  power,        ///< fails while objects of several sizes replace each other on a full disk
  none,
};
constexpr size_t hot_spots = 7;

class daemon_run {
 public:
  explicit daemon_run(const daemon_run_options& how);
  ~daemon_run();

  /// Lives and crashes; ends early if a promise is broken.
  void play();

  const std::vector<std::string>& broken() const { return model_.broken(); }
  uint64_t trace_hash() const { return events_.trace_hash(); }
  std::chrono::nanoseconds virtual_time() const { return events_.now(); }
  uint64_t steps() const { return events_.steps(); }
  /// How long clients of the group waited for answers that no client held up.
  const std::vector<std::chrono::nanoseconds>& waits_of(uint32_t group) { return world_.waits[group]; }
  bool is_healthy() const { return world_.healthy && !world_.gpu_fails; }
  std::vector<size_t> clients_of_groups() const;
  uint64_t answers() const { return answers_; }
  uint64_t errors() const { return errors_; }
  uint64_t objects_checked() const { return model_.checked(); }
  uint64_t clears() const { return model_.clears_answered(); }
  uint64_t crashes() const { return crashes_; }
  uint64_t restarts() const { return restarts_; }
  uint64_t gpu_processes() const { return gpu_processes_; }
  /// That loads have found in the tier of a device, as the last daemon says.
  uint64_t gpu_bytes() const { return gpu_bytes_; }

 private:
  void draw();
  void draw_machine();
  void draw_operators();
  std::string percent(uint64_t least, uint64_t most);
  void draw_hot_spot();
  void heat_mix();
  void draw_clients();
  void draw_redis(); ///< doors for Redis clients, and these clients (daemon_run_doors.cpp)
  void draw_store(); ///< a server for a remote tier
  void draw_second_store(seeded_random random);
  void draw_gpu(); ///< a tier in memory of a device, and its faults
  void draw_gpu_bytes();
  void heat_gpu();
  void forget_gpus();
  void check_gpu(const wire::StatusAnswer& told);
  bool draw_other_machine(uint32_t group);
  void on_other_clear(uint32_t group, simulated_store::other_clear what);
  std::string token_of_all(size_t store) const; ///< the key of its token whose change clears everything
  bool clear_as_other_machine(); ///< in all stores; false: not all have their token, and nothing is done
  void leave_out();
  void say(const std::string& what);

  void play_all();
  void boot();
  void live();
  uint64_t restarts_of_six() const;
  void return_disk();
  void reload();
  void crash();
  void forget_daemon();
  void finish();
  void leave_redis();
  void restart();
  class end_check;
  void check_empty(uint32_t group);
  void check_removals(uint32_t group, uint32_t space);
  void check_heap();
  void check_restarted(uint32_t group);
  void check_recovered(uint32_t group);
  void check_away();
  bool advance(); ///< false: it is time to stop
  bool advance_until(const std::function<bool()>& done, std::chrono::nanoseconds within);
  void look_at_sockets();
  void look_at_clients();

  daemon_run_options how_;
  seeded_random random_;
  scheduler events_;
  std::unique_ptr<simulated_disk> disk_;
  simulated_calls calls_;
  test::temporary_folder folder_;
  daemon_model model_;
  client_world world_;
  redis_clients redis_{world_, model_};
  seeded_random doors_random_; ///< of its own, so that seeds without doors are what they were
  std::vector<std::unique_ptr<simulated_store>>
      stores_; ///< none in most runs; in the order of the [[remote]] sections
  std::optional<daemon_model::removal>
      other_clear_; ///< by another machine, which the daemon may not know yet
  std::optional<client_world::prompt>
      left_on_disk_; ///< by the remote group, when the daemon ends for the last time
  daemon_life life_;
  disk_faults faults_;
  bool roomy_ = false;
  seeded_random gpu_random_; ///< of its own, for the same reason
  uint32_t gpu_dies_ = 0;    ///< its process, of a million events
  bool vanishes_ = false;    ///< the disk, now and then
  bool rots_ = false;        ///< bits of the disk change
  hot_spot hot_ = hot_spot::none;
  std::unique_ptr<simulated_daemon> daemon_;
  std::vector<std::unique_ptr<simulated_client>> clients_;
  uint64_t touches_seen_ = 0;
  std::vector<bool> scheduled_; ///< a client's socket is about to be served
  uint64_t answers_ = 0, errors_ = 0, crashes_ = 0, restarts_ = 0;
  uint64_t gpu_processes_ = 0, gpu_bytes_ = 0;
  uint64_t heap_at_start_ = 0; ///< of this daemon
};

} // namespace terrace::simulation
