#include "simulate/two_tier_cache.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace terrace::simulate {

namespace {

/// Calls `work` with each window of the chain, root first.
template <class Work>
void in_windows(std::span<const chunk> chain, uint64_t window_chunks, Work work) {
  for (size_t at = 0; at < chain.size(); at += window_chunks)
    work(chain.subspan(at, std::min<size_t>(window_chunks, chain.size() - at)));
}

} // namespace

two_tier_cache::two_tier_cache(const workload& of, const tracker_options& policies, const cache_shape& host,
                               const disk_shape& disk)
    : of_(of), shape_(host), disk_shape_(disk), tracker_(of, policies),
      host_(tracker_, host_tier, host.capacity_chunks, of.distinct_chunks()),
      disk_(tracker_, disk_tier, disk.capacity_chunks, of.distinct_chunks()) {
  assert(host.window_chunks > 0 && !policies.disk_policy.empty());
}

void two_tier_cache::serve(const request& next) {
  auto chain = of_.chain(next);
  if (chain.empty())
    return; // nothing that could be shared: a client asks for nothing
  tracker_.begin(next);
  size_t hits = look_up(chain);
  counts_.accesses += chain.size();
  counts_.hits += hits;
  load(chain.first(hits));
  store(chain.subspan(hits));
  if (disk_shape_.writes == disk_writes::on_use)
    offer(chain);
  counts_.evicted = host_.evicted();
  counts_.disk_evicted = disk_.evicted();
  tracker_.finish();
}

size_t two_tier_cache::look_up(std::span<const chunk> chain) {
  auto there = [&](chunk c) { return host_.holds(c) || disk_.holds(c); };
  size_t run = 0;
  for (; run < chain.size() && there(chain[run]); ++run)
    counts_.disk_hits += !host_.holds(chain[run]);
  counts_.behind_hole +=
      static_cast<uint64_t>(std::count_if(chain.begin() + static_cast<ptrdiff_t>(run), chain.end(), there));
  return run;
}

/// Under a lease: what was found stays in either tier until all of it is loaded.
void two_tier_cache::load(std::span<const chunk> run) {
  for (chunk c : run) {
    host_.pin(c);
    disk_.pin(c);
  }
  in_windows(run, shape_.window_chunks, [&](std::span<const chunk> window) {
    counts_.promoted += bring_to_host(window).value_or(0); // or it is read past host memory
  });
  for (chunk c : run) {
    host_.unpin(c);
    disk_.unpin(c);
  }
}

void two_tier_cache::store(std::span<const chunk> rest) {
  in_windows(rest, shape_.window_chunks, [&](std::span<const chunk> window) {
    if (auto stored = bring_to_host(window)) {
      counts_.stored += *stored;
      return;
    }
    counts_.no_room += window.size();
    if (disk_shape_.writes == disk_writes::on_eviction)
      offer(window); // written past host memory
  });
}

/// What the window lacks. Where room for it is made of its own end, that stays away, as in the daemon.
std::optional<size_t> two_tier_cache::bring_to_host(std::span<const chunk> window) {
  std::vector<chunk> missing;
  std::copy_if(window.begin(), window.end(), std::back_inserter(missing),
               [&](chunk c) { return !host_.holds(c); });
  bool room = host_.make_room(missing.size(), [&](chunk leaving) {
    if (disk_shape_.writes == disk_writes::on_eviction)
      offer({&leaving, 1});
  });
  if (!room)
    return std::nullopt;
  for (size_t i = missing.size(); i-- > 0;)
    host_.insert(missing[i]);
  return missing.size();
}

/// The rule is asked about all before any of them is there, so that none comes in because its parent just did; and
/// behind one that was refused nothing is taken that could not be found.
void two_tier_cache::offer(std::span<const chunk> run) {
  std::vector<chunk> offered;
  std::copy_if(run.begin(), run.end(), std::back_inserter(offered), [&](chunk c) { return !disk_.holds(c); });
  std::span<const chunk> asked(offered);
  if (disk_shape_.admission == admission_rule::beats_victim)
    asked = asked.subspan(std::min<size_t>(disk_.room(), asked.size()));
  size_t refused = asked.size() - tracker_.admitted(disk_tier, asked, disk_shape_.admission);
  counts_.disk_refused += refused;
  auto taken = std::span<const chunk>(offered).first(offered.size() - refused);
  in_windows(taken, shape_.window_chunks, [&](std::span<const chunk> window) {
    if (!disk_.make_room(window.size())) {
      counts_.disk_refused += window.size();
      return;
    }
    for (size_t i = window.size(); i-- > 0;)
      disk_.insert(window[i]);
    counts_.disk_written += window.size();
  });
}

} // namespace terrace::simulate
