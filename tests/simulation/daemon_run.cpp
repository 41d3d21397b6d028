#include "daemon_run.hpp"

#include "daemon_heap.hpp"

#include "index/object_header.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>

namespace terrace::simulation {

using protocol::kind;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr uint64_t disk_capacity = 64 * mebibyte;
constexpr size_t paths_max = 3; ///< of the disk tier

std::string path_of(size_t number) {
  return std::string(simulated_calls::folder) + "/d" + std::to_string(number);
}

/// A bit rots after so many events.
constexpr uint64_t rot_after = 100;

/// So many times as much is done by loud clients.
constexpr uint32_t loud = 20;

/// All deadlines are shorter than this.
constexpr auto longest_request = minutes(30);
/// What is left of clients that are gone ends within this.
constexpr auto longest_end = minutes(5);

} // namespace

daemon_run::daemon_run(const daemon_run_options& how)
    : how_(how), random_(how.bounds.seed), events_(random_.next()),
      disk_(std::make_unique<simulated_disk>(random_.next(), disk_capacity)),
      calls_(events_, random_.next()), world_{.events = events_, .model = model_, .calls = calls_},
      doors_random_(~how.bounds.seed), gpu_random_(how.bounds.seed ^ 0x9e3779b97f4a7c15) {
  disk_->mkdir(simulated_calls::folder);
  for (size_t path = 0; path < paths_max; ++path)
    disk_->mkdir(path_of(path));
  for (const char* folder : {"/", simulated_calls::folder})
    disk_->fsync(disk_->open(folder, O_RDONLY | O_DIRECTORY));
  calls_.mount(*disk_);
  if (how_.trace)
    world_.trace = [this](const std::string& line) { how_.trace(events_.now(), line); };
  draw();
}

daemon_run::~daemon_run() {
  world_.down = true;
  for (auto& client : clients_)
    client->leave();
  redis_.each([](redis_client& one) { one.leave(); });
  daemon_.reset();
}

void daemon_run::say(const std::string& what) {
  if (how_.trace)
    how_.trace(events_.now(), what);
}

// ---- what the seed draws ----

void daemon_run::draw() {
  draw_machine();
  draw_operators();
  draw_hot_spot();
  draw_clients();
  draw_redis();
  draw_store();
  draw_gpu();
  leave_out();
}

/// After all draws, so that the rest is what it was.
void daemon_run::leave_out() {
  const run_bounds& bounds = how_.bounds;
  if (!bounds.has("disk_faults"))
    faults_ = {};
  if (!bounds.has("disk_delays"))
    life_.disk = {};
  if (!bounds.has("cuts")) {
    world_.cut = 0;
    life_.sockets = {};
  }
  if (!bounds.has("actor_delays"))
    life_.actors = {};
  vanishes_ = vanishes_ && bounds.has("vanishing");
  rots_ = rots_ && bounds.has("rot");
  for (size_t i = 0; i < deeds; ++i)
    if (!bounds.has(deed_names[i]))
      world_.mix[i] = 0;
}

void daemon_run::draw_machine() {
  life_.seed = random_.next();
  life_.trace = how_.trace;
  life_.actors = actor_delays::draw(random_);
  life_.sockets = socket_habits::draw(random_);
  life_.disk.long_ones = random_.swarm(20'000);
  life_.disk.longest = seconds(20);
  if (random_.below(4) == 0)
    faults_ = disk_faults::draw(random_);
  settings& with = life_.with = default_settings(environment{});
  auto groups = random_.between(1, 2);
  with.listen.resize(groups, with.listen.front());
  for (size_t i = 0; i < groups; ++i) {
    with.listen[i].path = folder_.path() + "/s" + std::to_string(i);
    with.listen[i].group = i == 0 ? "default" : "other";
    with.listen[i].isolated = random_.below(3) == 0;
    world_.sockets.push_back(with.listen[i].path);
    world_.isolated.push_back(with.listen[i].isolated);
  }
  // Objects of one or a few pages, in memory for few of them or for all.
  world_.pools.assign(random_.between(1, 2), 0);
  for (uint32_t& bytes : world_.pools)
    bytes = static_cast<uint32_t>(random_.between(64, random_.coin() ? 4000 : 30'000));
  world_.spaces = static_cast<uint32_t>(random_.between(1, 2));
  world_.salts.resize(world_.spaces);
  world_.prompts = static_cast<uint32_t>(random_.between(1, 12));
  world_.chunks = static_cast<uint32_t>(random_.between(1, 6));
  world_.shared_chunks = static_cast<uint32_t>(random_.below(world_.chunks + 1));
  uint64_t chunk = 0;
  for (uint32_t bytes : world_.pools)
    chunk += physical_bytes_for(bytes);
  uint64_t all = chunk * world_.spaces * world_.prompts * world_.chunks;
  roomy_ = random_.below(3) == 0;
  uint64_t host = roomy_ ? 4 * all + mebibyte : chunk * random_.between(3, 40);
  with.host.bytes = groups * ((host + page_bytes - 1) / page_bytes * page_bytes);
  with.host.segment_bytes = huge_page_bytes;
  with.host.prefault = random_.coin();
  with.disk.path.clear();
  uint64_t paths = random_.coin() ? 1 : random_.between(1, paths_max);
  for (size_t path = 0; path < paths; ++path)
    with.disk.path.push_back(path_of(path));
  with.disk.bytes = random_.below(4) == 0 ? 0
                                          : groups * (roomy_ ? 2 * all + 4 * mebibyte
                                                             : paths * mebibyte * random_.between(1, 2));
  auto policy = [&] { return client_world::policies[random_.below(client_world::policies.size())]; };
  with.host.policy = policy();
  with.disk.policy = policy();
  with.disk.admission = disk_options::admissions[random_.below(disk_options::admissions.size())];
  static constexpr const char* demotions[] = {"write_through", "write_back", "selective"};
  with.disk.demotion = demotions[random_.below(std::size(demotions))];
  with.copier.threads = static_cast<uint32_t>(random_.between(1, 2));
  with.metrics.address.clear();
  with.connection.request_deadline = seconds(random_.between(1, 30));
  with.connection.group_bytes = mebibyte * random_.between(16, 64); // 4 to 16 requests in flight
  vanishes_ = with.disk.enabled() && random_.below(8) == 0;
}

/// Tenants with quotas, and a configuration that changes.
void daemon_run::draw_operators() {
  settings& with = life_.with;
  if (random_.below(4) == 0) {
    roomy_ = false;
    world_.salts.back() = "tenant-b";
    if (random_.coin())
      world_.salts.front() = "tenant-a";
    with.quota.push_back({.name = "rule", .rule = "tenant-*", .host_max = percent(30, 100)});
    with.quota.push_back({.name = "a", .tenant = "tenant-a", .host_max = percent(30, 100)});
    if (random_.coin())
      with.quota.back().host_guaranteed = percent(0, 30);
    if (with.disk.enabled())
      with.quota.back().disk_max = percent(30, 100);
    for (const quota_options& each : with.quota)
      world_.quotas.push_back(each.name);
  }
  if (random_.below(4) != 0)
    return;
  roomy_ = false;
  with.host.bytes = with.listen.size() * random_.between(1, 3) * huge_page_bytes;
  world_.reload = [this] { reload(); };
}

std::string daemon_run::percent(uint64_t least, uint64_t most) {
  return std::to_string(random_.between(least, most)) + "%";
}

/// As SIGHUP does.
void daemon_run::reload() {
  if (world_.down)
    return;
  say("the configuration is read again");
  settings changed = life_.with;
  changed.host.bytes = changed.listen.size() * random_.between(1, 4) * huge_page_bytes;
  changed.host.policy = client_world::policies[random_.below(client_world::policies.size())];
  changed.disk.policy = client_world::policies[random_.below(client_world::policies.size())];
  for (quota_options& each : changed.quota)
    each.host_max = percent(30, 100);
  if (!changed.validate().empty())
    return;
  daemon_->reload(changed);
  life_.with = changed;
}

void daemon_run::draw_clients() {
  world_.thinks_most = std::chrono::nanoseconds(random_.between(1'000, 1U << random_.between(12, 26)));
  world_.cut = random_.swarm(500'000);
  static constexpr client_mix most{20, 20, 10, 15, 15, 15, 15, 10, 4, 10, 10, 3, 3, 3, 3, 2,
                                   1,  4,  2,  4,  1,  2,  1,  3,  1, 1,  1,  1, 2, 2, 4, 3};
  for (size_t i = 0; i < deeds; ++i)
    world_.mix[i] = random_.below(4) == 0 ? 0 : random_.below(6) == 0 ? 10 * most[i] : most[i];
  world_.mix[static_cast<size_t>(deed::store)] = most[0];
  heat_mix();
  world_.roomy = roomy_;
  world_.answers_within = std::chrono::milliseconds(20) + 100 * life_.disk.most +
                          300 * (10 * life_.actors.most + life_.sockets.most);
  world_.tails = random_.coin();
  world_.names_lookups = random_.coin();
  world_.healthy =
      !life_.with.disk.enabled() || (faults_ == disk_faults{.short_reads = faults_.short_reads} &&
                                     life_.disk.long_ones == 0 && !vanishes_ && !rots_);
  world_.sound = world_.healthy;
  bool all_on_disk = life_.with.disk.enabled() && life_.with.disk.admission == "always" &&
                     life_.with.disk.demotion != "selective";
  bool all_found = roomy_ || hot_ == hot_spot::restarts;
  model_.promise({.all_found = all_found,
                  .disk_has_all = !roomy_,
                  .kept_found = world_.healthy,
                  .restart_keeps = all_found && world_.healthy && all_on_disk});
  if (how_.others == neighbours::loud)
    world_.loud_group = 1;
  auto count = static_cast<uint32_t>(random_.between(1, 6));
  for (uint32_t i = 0; i < count; ++i) {
    auto group = static_cast<uint32_t>(random_.below(world_.sockets.size()));
    uint64_t seed = random_.next();
    auto acts = static_cast<uint32_t>(random_.between(1, run_bounds().deeds));
    acts = how_.bounds.acts(i) ? std::min(acts, how_.bounds.deeds) : 0;
    if (group != 0 && how_.others != neighbours::as_drawn)
      acts = how_.others == neighbours::silent ? 0 : loud * acts;
    clients_.push_back(std::make_unique<simulated_client>(world_, i, group, seed, acts));
  }
  scheduled_.assign(count, false);
}

// ---- time ----

void daemon_run::look_at_sockets() {
  if (std::exchange(touches_seen_, simulated_sockets::touches()) == simulated_sockets::touches())
    return;
  look_at_clients();
  redis_.look(doors_random_, life_.sockets.most);
  for (auto& store : stores_)
    store->look();
}

void daemon_run::look_at_clients() {
  std::vector<pollfd> watched;
  for (const auto& client : clients_)
    watched.push_back({client->descriptor(), client->wants(), 0});
  if (::poll(watched.data(), watched.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0 && watched[i].events != 0 && !scheduled_[i]) {
      scheduled_[i] = true;
      auto most = static_cast<uint64_t>(life_.sockets.most.count());
      events_.after(std::chrono::nanoseconds(random_.between(0, most)), [this, i] {
        scheduled_[i] = false;
        clients_[i]->ready();
        simulated_sockets::touch();
      });
    }
}

std::vector<size_t> daemon_run::clients_of_groups() const {
  std::vector<size_t> count(world_.sockets.size());
  for (const auto& each : clients_)
    ++count[each->group()];
  return count;
}

bool daemon_run::advance() {
  if (!broken().empty())
    return false;
  look_at_sockets();
  if (daemon_->step())
    return true;
  simulated_sockets::touch();
  look_at_sockets();
  return daemon_->step();
}

bool daemon_run::advance_until(const std::function<bool()>& done, std::chrono::nanoseconds within) {
  auto until = events_.now() + within;
  while (!done()) {
    if (events_.now() > until || !broken().empty())
      return false;
    if (!advance() && !done())
      return false;
  }
  return true;
}

// ---- lives ----

void daemon_run::play() {
  try {
    play_all();
  } catch (const std::exception& thrown) {
    model_.broke(thrown.what());
  }
}

void daemon_run::play_all() {
  boot();
  for (auto& client : clients_)
    client->start();
  redis_.each([](redis_client& one) { one.start(); });
  for (uint64_t lives = std::min<uint64_t>(random_.below(4), how_.bounds.lives);
       lives > 0 && broken().empty(); --lives) {
    live();
    if (random_.below(6) < restarts_of_six() && broken().empty())
      restart();
    else if (broken().empty())
      crash();
  }
  if (broken().empty())
    finish();
}

void daemon_run::boot() {
  say("the daemon starts");
  daemon_ = std::make_unique<simulated_daemon>(events_, *disk_, life_);
  life_.seed += 1;
  // Opening a volume that fails is tried by the operator; here the faults begin once it serves.
  for (int i = 0; i < 200; ++i)
    daemon_->step();
  disk_->set_faults(faults_);
  heap_at_start_ = daemon_heap::bytes();
  daemon_heap::begin_peak();
  world_.down = false;
}

/// Of six ends of a daemon's life so many are in order.
uint64_t daemon_run::restarts_of_six() const {
  return hot_ == hot_spot::restarts ? 4 : hot_ == hot_spot::power ? 0 : 2;
}

/// Some events, and then anything may happen: rather soon after a clear was answered, which nobody may forget.
void daemon_run::live() {
  uint64_t cleared = model_.clears_answered();
  uint64_t vanishes = vanishes_ ? random_.below(6000) : UINT64_MAX;
  uint64_t returns = vanishes_ && vanishes > 0 ? random_.below(vanishes) : UINT64_MAX;
  uint64_t most = hot_ == hot_spot::restarts ? 1500 : 6000; // while clients still store
  for (uint64_t left = std::min<uint64_t>(random_.below(most), how_.bounds.events); left > 0 && advance();
       --left) {
    if (left == vanishes) {
      say("the disk vanishes");
      disk_->vanish();
    }
    if (left == returns)
      return_disk();
    if (gpu_random_.chance(gpu_dies_)) {
      say("the processes of GPUs are killed");
      daemon_->gpus()->kill();
    }
    if (rots_ && random_.below(rot_after) == 0)
      disk_->rot();
    if (std::exchange(cleared, model_.clears_answered()) != model_.clears_answered() && random_.coin())
      left = std::min(left, random_.between(1, 30));
  }
}

void daemon_run::return_disk() {
  if (!disk_->away())
    return;
  say("the disk is back");
  disk_->come_back();
}

void daemon_run::forget_daemon() {
  world_.forget_daemon();
  other_clear_.reset();
}

void daemon_run::crash() {
  say("the daemon crashes");
  ++crashes_;
  world_.down = true;
  for (auto& client : clients_)
    client->lose_daemon();
  redis_.each([](redis_client& one) { one.lose_daemon(); });
  return_disk();
  auto left = std::make_unique<simulated_disk>(disk_->snapshot(random_.next()));
  daemon_->process().ring().leave_writes(*left);
  bool power = random_.coin() || hot_ == hot_spot::power;
  if (hot_ == hot_spot::power)
    left->crash(random_.coin() ? survival::changes : survival::sectors);
  else if (power)
    left->crash();
  else
    left->end_process();
  left->set_faults({});
  model_.crashed();
  world_.sound = false;
  redis_.values().crashed();
  forget_daemon();
  for (auto& store : stores_)
    store->lose_daemon();
  forget_gpus();
  daemon_.reset(); // on the old disk, which nobody sees any more
  for (auto& store : stores_)
    store->serve_daemon();
  disk_ = std::move(left);
  calls_.mount(*disk_);
  boot();
  for (uint32_t group = 0; group < world_.sockets.size() && broken().empty(); ++group)
    check_recovered(group);
}

/// As systemd does: clients lose their connections, and the daemon ends in order.
void daemon_run::restart() {
  say("the daemon is restarted");
  ++restarts_;
  world_.down = true;
  return_disk();
  daemon_->drain();
  if (random_.below(4) == 0) {
    for (uint64_t left = random_.below(200); left > 0 && advance(); --left) {
    }
    crash();
    return;
  }
  bool ended = advance_until([&] { return daemon_->ended(); }, minutes(10));
  if (!broken().empty())
    return; // time has stopped there
  if (!ended)
    model_.broke("the daemon does not end");
  else if (!daemon_->ended_well())
    model_.broke("the daemon did not end well: " +
                 (daemon_->warnings().empty() ? std::string() : daemon_->warnings().back()));
  for (auto& client : clients_)
    client->lose_daemon();
  redis_.each([](redis_client& one) { one.lose_daemon(); });
  model_.restarted();
  redis_.values().restarted();
  forget_daemon();
  for (auto& store : stores_)
    store->lose_daemon();
  forget_gpus();
  daemon_.reset();
  for (auto& store : stores_)
    store->serve_daemon();
  disk_->end_process();
  disk_->set_faults({});
  boot();
  for (uint32_t group = 0; group < world_.sockets.size() && broken().empty(); ++group)
    check_restarted(group);
}

/// All clients come to their end: every request is answered, and nothing of them is left.
void daemon_run::finish() {
  say("clients finish");
  return_disk();
  auto all_finished = [&] {
    return redis_.finished() &&
           std::all_of(clients_.begin(), clients_.end(), [](const auto& each) { return each->finished(); });
  };
  advance_until(all_finished, minutes(1));
  for (auto& client : clients_)
    client->wind_up();
  redis_.each([](redis_client& one) { one.wind_up(); });
  if (!advance_until(all_finished, longest_request) && broken().empty())
    for (auto& client : clients_)
      if (!client->finished())
        model_.broke("not answered: " + client->unanswered());
  for (auto& client : clients_) {
    answers_ += client->answers();
    errors_ += client->errors();
    client->leave();
  }
  leave_redis();
  for (auto& store : stores_)
    store->recover();
  if (auto* gpus = daemon_->gpus()) {
    gpus->recover();
    gpu_processes_ += gpus->started();
  }
  other_clear_.reset();
  disk_->set_faults({});
  advance_until([] { return false; }, longest_end);
  model_.all_quiet();
  for (uint32_t group = 0; group < world_.sockets.size() && broken().empty(); ++group)
    check_empty(group);
  check_heap();
  if (!broken().empty())
    return;
  daemon_->drain();
  if (!advance_until([&] { return daemon_->ended(); }, minutes(10)))
    model_.broke("the daemon does not end");
  else if (!daemon_->ended_well())
    model_.broke("the daemon did not end well");
  else if (left_on_disk_)
    check_away();
}

} // namespace terrace::simulation
