// What some seeds have beside a disk and clients of the protocol: doors for Redis clients, a remote store, and a GPU.
#include "daemon_run.hpp"

#include "index/object_header.hpp"
#include "remote/realm.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace terrace::simulation {

using std::chrono::seconds;

namespace {

constexpr uint32_t first_redis_client = 6; ///< its number
const std::string realm_key(32, 'r');

/// A file that only its owner reads.
std::string write_secret(const std::string& path, const std::string& secret) {
  std::ofstream(path) << secret;
  ::chmod(path.c_str(), 0600);
  return path;
}

uint64_t pages(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

} // namespace

void daemon_run::draw_redis() {
  seeded_random& random = doors_random_;
  settings& with = life_.with;
  if (random.below(4) != 0)
    return;
  redis_world& world = redis_.world();
  for (uint32_t group = 0; group < with.listen.size(); ++group) {
    if (group != 0 && random.coin())
      continue;
    redis_door door{folder_.path() + "/r" + std::to_string(group), random.below(3) == 0 ? "open sesame" : ""};
    redis_options& opened = with.resp.emplace_back();
    opened.address = door.path;
    opened.group = with.listen[group].group;
    if (!door.password.empty())
      opened.password_file = write_secret(door.path + "-password", door.password + "\n");
    world.doors.emplace_back(group, door);
  }
  world.keys = static_cast<uint32_t>(random.between(1, 12));
  world.bytes_most = random.between(8, std::array{200, 16 << 10, 100 << 10}[random.below(3)]);
  if (world_.reload && hot_ != hot_spot::none)
    world.bytes_most = std::min<size_t>(world.bytes_most, 200); // no larger value fits memory as it changes
  world.patience =
      2 * std::chrono::duration_cast<std::chrono::nanoseconds>(with.connection.request_deadline) + seconds(5);
  // Room for some values, or for all, and for those which replace them.
  uint64_t one = physical_bytes_for(world.bytes_most);
  uint64_t all = one * world.keys;
  auto groups = with.listen.size();
  if (!world_.reload)
    with.host.bytes += groups * (roomy_ ? 4 * all + mebibyte : pages(one * random.between(1, 6)));
  if (with.disk.enabled())
    with.disk.bytes += groups * (roomy_ ? 2 * all + 4 * mebibyte : pages(one * random.between(1, 6)));
  bool all_on_disk =
      with.disk.enabled() && with.disk.admission == "always" && with.disk.demotion != "selective";
  redis_.values().promise({.all_found = roomy_,
                           .restart_keeps = roomy_ && world_.healthy && all_on_disk,
                           .replaced_stay_away = world_.healthy});
  for (uint32_t i = 0, count = static_cast<uint32_t>(random.between(1, 3)); i < count; ++i) {
    uint64_t seed = random.next();
    auto acts = static_cast<uint32_t>(random.between(1, 2 * run_bounds().deeds));
    bool plays = how_.bounds.has("redis") && how_.bounds.acts(first_redis_client + i);
    redis_.add(seed, first_redis_client + i, plays ? std::min(acts, 2 * how_.bounds.deeds) : 0);
  }
}

/// The remote tier of the first group that may have one. An isolated one may if its values are encrypted.
void daemon_run::draw_store() {
  seeded_random& random = doors_random_;
  settings& with = life_.with;
  bool encrypts = random.below(3) == 0;
  auto group =
      encrypts ? world_.isolated.begin() : std::find(world_.isolated.begin(), world_.isolated.end(), false);
  if (random.below(4) != 0 || group == world_.isolated.end())
    return;
  // Clears that the store is not told of are recorded in a file, also without a disk tier.
  world_.healthy = world_.healthy && faults_ == disk_faults{};
  remote_options& remote = with.remote.emplace_back();
  remote.address = folder_.path() + "/store";
  remote.group = with.listen[static_cast<size_t>(group - world_.isolated.begin())].group;
  remote.realm_key_file = write_secret(folder_.path() + "/realm", realm_key);
  remote.encrypt = encrypts;
  remote.demotion = std::string(remote_options::demotions[random.below(remote_options::demotions.size())]);
  remote.lookup_budget = std::chrono::milliseconds(random.between(1, random.coin() ? 3 : 60));
  remote.lifetime = std::chrono::minutes(random.coin() ? 1 : 60);
  store_habits habits = store_habits::draw(random);
  bool dangerous = random.coin();
  std::chrono::nanoseconds most(random.between(10'000'000, 2'000'000'000));
  if (!how_.bounds.has("store_faults")) {
    habits = {.password = habits.password};
    dangerous = false;
  }
  if (!habits.password.empty())
    remote.password_file = write_secret(folder_.path() + "/store-password", habits.password + "\n");
  world_.sound = false;                             // what it sends may be damaged
  world_.answers_within += std::chrono::seconds(5); // and a request waits for it
  const uint64_t store_seed = random.next();
  remote.compress =
      seeded_random(store_seed).fork().coin(); // no draw of its own, so that other draws stay as they are
  auto& store = stores_.emplace_back(
      std::make_unique<simulated_store>(events_, store_seed, remote.address, habits, world_.trace));
  if (dangerous)
    store->live_dangerously(most);
  world_.remote_group = static_cast<uint32_t>(group - world_.isolated.begin());
  model_.shares(*world_.remote_group);
  if (draw_other_machine(*world_.remote_group))
    return; // it has the first store alone, and clears nothing in another one
  draw_second_store(seeded_random(store_seed).fork().fork());
}

/// In half of these runs the group has a second store, with faults of its own.
void daemon_run::draw_second_store(seeded_random random) {
  if (random.coin())
    return;
  remote_options second = life_.with.remote.front();
  second.address = folder_.path() + "/second";
  second.prefix = "second";
  second.password_file.clear();
  second.demotion = std::string(remote_options::demotions[random.below(remote_options::demotions.size())]);
  second.lookup_budget = std::chrono::milliseconds(random.between(1, 60));
  life_.with.remote.push_back(second);
  world_.answers_within += std::chrono::seconds(5);
  store_habits habits = store_habits::draw(random);
  habits.password.clear();
  const bool faults = how_.bounds.has("store_faults");
  auto& store = stores_.emplace_back(std::make_unique<simulated_store>(
      events_, random.next(), second.address, faults ? habits : store_habits{}, world_.trace));
  if (faults && random.coin())
    store->live_dangerously(std::chrono::nanoseconds(random.between(10'000'000, 2'000'000'000)));
}

/// In half of these runs another machine shares the store, and clears it. False: none does.
bool daemon_run::draw_other_machine(uint32_t group) {
  std::chrono::nanoseconds most(doors_random_.between(100'000'000, 20'000'000'000));
  if (doors_random_.coin() || !world_.healthy || !how_.bounds.has("store_faults"))
    return false;
  stores_.front()->share(token_of_all(0), most, world_.answers_within + seconds(5),
                         [this, group](simulated_store::other_clear what) { on_other_clear(group, what); });
  return true;
}

bool daemon_run::clear_as_other_machine() {
  for (size_t i = 0; i < stores_.size(); ++i)
    if (!stores_[i]->has_token(token_of_all(i)))
      return false;
  for (size_t i = 0; i < stores_.size(); ++i)
    stores_[i]->clear_as_other_machine(token_of_all(i));
  return true;
}

std::string daemon_run::token_of_all(size_t store) const {
  const remote_options& with = life_.with.remote.at(store);
  std::vector<uint8_t> key(realm_key.begin(), realm_key.end());
  return remote::realm::make(with.prefix, key, with.encrypt)->epoch_key_of_all();
}

/// What was stored before is away once the daemon knows of the clear, and has had time to clear as well.
void daemon_run::on_other_clear(uint32_t group, simulated_store::other_clear what) {
  if (what == simulated_store::other_clear::begins)
    other_clear_ = model_.clears(group, std::nullopt);
  else
    model_.cleared(*std::exchange(other_clear_, std::nullopt), what == simulated_store::other_clear::known);
}

/// A tier in memory of a device for each group. Some clients have their memory there, too.
void daemon_run::draw_gpu() {
  seeded_random& random = gpu_random_;
  if (random.below(5) != 0 || !how_.bounds.has("gpu"))
    return;
  gpu_habits habits = gpu_habits::draw(random);
  gpu_dies_ = random.coin() ? 0 : random.swarm(20'000);
  if (!how_.bounds.has("gpu_faults")) {
    habits = habits.sound();
    gpu_dies_ = 0;
  }
  gpu_options& gpu = life_.with.gpu;
  gpu.tier_device = "host";
  gpu.tier_demotion = std::string(gpu_options::demotions[random.below(gpu_options::demotions.size())]);
  gpu.map_arenas = std::string(gpu_options::mapped_arenas[random.below(gpu_options::mapped_arenas.size())]);
  gpu.deadline = std::chrono::milliseconds(random.between(200, 3'000));
  draw_gpu_bytes();
  life_.gpus = habits;
  world_.gpu = true;
  world_.gpu_fails = habits.fail() || gpu_dies_ != 0;
  // Copies of all clients follow each other.
  world_.answers_within += 1000 * habits.most;
  if (world_.gpu_fails) {
    world_.answers_within += 4 * gpu.deadline + 4 * habits.latest + seconds(1);
    world_.sound = false;
    model_.promise_no_more_kept();
  }
  heat_gpu();
}

/// What has left host memory is found in the device's tier only if it was loaded before, and is loaded again.
void daemon_run::heat_gpu() {
  if (gpu_random_.below(4) == 0)
    return;
  auto often = [this](deed which, uint32_t weight) { world_.mix[static_cast<size_t>(which)] = weight; };
  world_.prompts = std::min<uint32_t>(world_.prompts, 3);
  often(deed::load, 200);
  often(deed::store, 40);
  often(deed::evict, 40);
  often(deed::lease, 20);
  often(deed::load_leased, 40);
}

/// For a few chunks or for more. The configuration that is read again must be valid.
void daemon_run::draw_gpu_bytes() {
  uint64_t chunk = 0;
  for (uint32_t bytes : world_.pools)
    chunk += physical_bytes_for(bytes);
  uint64_t bytes = chunk * gpu_random_.between(1, 30);
  life_.with.gpu.tier_bytes = world_.reload ? std::max(bytes, uint64_t{mebibyte}) : bytes;
}

/// The daemon is about to end. The next one may have a smaller tier.
void daemon_run::forget_gpus() {
  if (!daemon_->gpus())
    return;
  gpu_processes_ += daemon_->gpus()->started();
  draw_gpu_bytes();
}

void daemon_run::leave_redis() {
  redis_.each([this](redis_client& one) {
    if (!one.finished())
      model_.broke("not answered: " + one.unanswered());
    answers_ += one.answers();
    errors_ += one.errors();
    one.leave();
  });
  redis_.values().all_quiet();
}

} // namespace terrace::simulation
