// Some seeds do a few things much more often than others, in little memory: what must meet for an error to be seen, meets
// there.
#include "daemon_run.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

namespace terrace::simulation {

namespace {

using weight = std::pair<deed, uint32_t>;

/// Everything else remains as rare as these are frequent.
void only(client_mix& mix, std::initializer_list<weight> often) {
  for (uint32_t& each : mix)
    each = std::min(each, 1U);
  for (deed never : {deed::pause, deed::stop_reading, deed::reload})
    mix[static_cast<size_t>(never)] = 0;
  for (auto [which, times] : often)
    mix[static_cast<size_t>(which)] = times;
}

} // namespace

void daemon_run::draw_hot_spot() {
  constexpr uint64_t of_all_seeds = 20;
  auto drawn = random_.below(of_all_seeds);
  hot_ = drawn < hot_spots ? static_cast<hot_spot>(drawn) : hot_spot::none;
  settings& with = life_.with;
  auto chunk = [this] {
    return std::accumulate(world_.pools.begin(), world_.pools.end(), uint64_t{0},
                           [](uint64_t sum, uint32_t bytes) { return sum + physical_bytes_for(bytes); });
  };
  auto groups = with.listen.size();
  auto host_has = [&](uint64_t chunks) {
    roomy_ = false;
    with.host.bytes = groups * ((chunk() * chunks + page_bytes - 1) / page_bytes * page_bytes);
  };
  uint64_t all = chunk() * world_.spaces * world_.prompts * (world_.chunks + 1);
  auto disk_has_all = [&] {
    with.disk.bytes = groups * (2 * all + 4 * mebibyte);
    with.disk.admission = "always";
    with.disk.demotion = random_.coin() ? "write_through" : "write_back";
  };
  auto no_device_fails = [&] {
    faults_ = {};
    life_.disk.long_ones = 0;
    vanishes_ = false;
  };
  auto no_operator_changes = [&] {
    with.quota.clear();
    world_.quotas.clear();
    world_.reload = nullptr;
  };
  switch (hot_) {
    case hot_spot::none:
      if (random_.below(4) == 0 && faults_ == disk_faults{})
        faults_.short_reads = 200'000;
      return;
    case hot_spot::restarts:
      no_operator_changes();
      no_device_fails();
      with.disk.depth = random_.coin() ? 1 : with.disk.depth; // writes wait in line
      faults_.short_reads = random_.coin() ? 500'000 : 0;
      life_.disk.most = life_.disk.most * (1 << random_.below(7));
      disk_has_all();
      host_has(random_.between(10, 40));
      break;
    case hot_spot::rotting:
      disk_has_all();
      host_has(random_.between(3, 6));
      rots_ = true;
      break;
    case hot_spot::reservations:
      for (size_t group = 0; group < groups; ++group)
        world_.isolated[group] = with.listen[group].isolated = false;
      no_device_fails();
      life_.actors = {};
      life_.sockets = {};
      host_has(random_.between(3, 5));
      break;
    case hot_spot::clears:
      // Whoever clears is often slower than a whole load.
      life_.actors.most = std::chrono::milliseconds(1);
      life_.actors.differ = true;
      life_.disk.most = life_.disk.least;
      world_.prompts = static_cast<uint32_t>(random_.between(1, 2));
      world_.spaces = 1;
      disk_has_all();
      host_has(3);
      break;
    case hot_spot::leases: host_has(random_.between(3, 6)); break;
    case hot_spot::power:
      no_device_fails();
      world_.pools = {static_cast<uint32_t>(random_.between(3000, 9000)),
                      static_cast<uint32_t>(random_.between(9000, 30'000))};
      world_.prompts = 12;
      world_.chunks = 6;
      with.disk.bytes = groups * with.disk.path.size() * mebibyte;
      with.disk.admission = "always";
      with.disk.demotion = "write_through";
      host_has(10);
      break;
    case hot_spot::tails:
      world_.prompts = 1;
      world_.chunks = static_cast<uint32_t>(random_.between(1, 3));
      world_.shared_chunks = std::min(world_.shared_chunks, world_.chunks);
      no_operator_changes();
      no_device_fails();
      disk_has_all();
      with.host.bytes = groups * (4 * all + mebibyte);
      roomy_ = true;
      break;
  }
}

void daemon_run::heat_mix() {
  client_mix& mix = world_.mix;
  switch (hot_) {
    case hot_spot::none: return;
    case hot_spot::restarts: only(mix, {{deed::store, 40}, {deed::load, 15}, {deed::reserve, 5}}); break;
    case hot_spot::rotting:
      only(mix, {{deed::store, 20}, {deed::load, 40}, {deed::lease, 10}, {deed::load_leased, 10}});
      break;
    case hot_spot::reservations:
      only(mix, {{deed::reserve, 30}, {deed::store, 30}, {deed::load, 5}});
      world_.thinks_most = std::chrono::nanoseconds(1U << random_.between(25, 28));
      break;
    case hot_spot::power: only(mix, {{deed::store, 40}, {deed::load, 10}}); break;
    case hot_spot::clears:
      only(mix, {{deed::store, 20},
                 {deed::move, 20},
                 {deed::load, 40},
                 {deed::clear_space, 2},
                 {deed::clear_all, 2}});
      break;
    case hot_spot::leases:
      only(mix, {{deed::store, 40},
                 {deed::lease, 30},
                 {deed::load_leased, 10},
                 {deed::read_leased, 20},
                 {deed::release, 25},
                 {deed::prefetch, 5}});
      break;
    case hot_spot::tails: only(mix, {{deed::session, 60}, {deed::store, 10}, {deed::lookup, 10}}); break;
  }
}

} // namespace terrace::simulation
