#include "cli/simulate/tier_cache.hpp"

#include "base/window_refill.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace terrace::simulate {

namespace {

/// Calls `work` with each run of at most `length` chunks, root first, until it returns false. Returns the
/// number of chunks in the runs for which it returned true.
template <class Work>
size_t in_runs(std::span<const chunk> chain, uint64_t length, Work work) {
  size_t at = 0;
  while (at < chain.size()) {
    auto run = chain.subspan(at, std::min<size_t>(length, chain.size() - at));
    if (!work(run))
      break;
    at += run.size();
  }
  return at;
}

} // namespace

tier_cache::tier_cache(const workload& trace, const tracker_options& policies, const cache_shape& first,
                       const std::vector<lower_tier>& below)
    : of_(trace), shape_(first), tracker_(trace, policies) {
  assert(first.window_chunks > 0 && first.batch_chunks > 0 && policies.policies.size() == 1 + below.size());
  tiers_.reserve(1 + below.size());
  tiers_.push_back({{tracker_, tier_at(0), first.capacity_chunks, trace.distinct_chunks()}, {}});
  for (const lower_tier& next : below)
    tiers_.push_back(
        {{tracker_, tier_at(tiers_.size()), next.capacity_chunks, trace.distinct_chunks()}, next});
}

void tier_cache::serve(const request& next) {
  auto chain = of_.chain(next);
  if (chain.empty())
    return; // no whole chunk, so a client sends no request
  tracker_.begin(next);
  size_t hits = look_up(chain);
  counts_.accesses += chain.size();
  counts_.hits += hits;
  load(chain.first(hits));
  // The lease has ended here: a request that waits for memory holds none. Even so, its accesses are evicted
  // last.
  store(chain.subspan(hits));
  counts_.evicted = first().evicted();
  counts_.disk_evicted = 0;
  for (size_t below = 1; below < tiers_.size(); ++below) {
    if (tiers_[below].rules.writes == tier_writes::on_use)
      offer(below, chain);
    counts_.disk_evicted += tiers_[below].contents.evicted();
  }
  tracker_.finish();
}

bool tier_cache::holds_anywhere(chunk which) const {
  return std::any_of(tiers_.begin(), tiers_.end(), [&](const tier& t) { return t.contents.holds(which); });
}

size_t tier_cache::look_up(std::span<const chunk> chain) {
  size_t run = 0;
  for (; run < chain.size() && holds_anywhere(chain[run]); ++run)
    counts_.disk_hits += !first().holds(chain[run]);
  for (chunk behind : chain.subspan(run))
    counts_.behind_hole += holds_anywhere(behind);
  return run;
}

/// Runs under a lease: found chunks stay in every tier until all of them are loaded.
void tier_cache::load(std::span<const chunk> run) {
  if (tiers_.size() == 1)
    return; // the whole window is in the first tier
  for (chunk c : run)
    for (tier& t : tiers_)
      t.contents.pin(c);
  in_runs(run, shape_.window_chunks, [&](std::span<const chunk> window) {
    // If nothing is returned, the window bypasses the first tier.
    counts_.promoted += bring_to_first(window).value_or(0);
    return true;
  });
  for (chunk c : run)
    for (tier& t : tiers_)
      t.contents.unpin(c);
}

void tier_cache::store(std::span<const chunk> rest) {
  auto store_window = [&](std::span<const chunk> window) {
    if (auto stored = bring_to_first(window)) {
      counts_.stored += *stored;
      return true;
    }
    if (tiers_.size() == 1)
      return false; // the client stores nothing after a gap
    counts_.no_room += window.size();
    if (tiers_[1].rules.writes == tier_writes::on_eviction)
      offer(1, window); // the window bypasses the first tier
    return true;
  };
  if (tiers_.size() > 1) {
    in_runs(rest, shape_.window_chunks, store_window);
    return;
  }
  in_runs(rest, shape_.batch_chunks, [&](std::span<const chunk> batch) {
    size_t stored = in_runs(batch, shape_.window_chunks, store_window);
    rest = rest.subspan(stored);
    return stored == batch.size();
  });
  counts_.no_room += rest.size();
}

/// Copies all chunks that the window lacks, or none. If room for them is made from the window's own end, that
/// end stays absent; gaps before chunks that stay are filled again.
std::optional<size_t> tier_cache::bring_to_first(std::span<const chunk> window) {
  size_t brought = 0;
  size_t wanted = window.size();
  for (int round = 0; wanted != 0 && round <= refills_max; ++round) {
    std::vector<chunk> missing;
    std::copy_if(window.begin(), window.end(), std::back_inserter(missing),
                 [&](chunk c) { return !first().holds(c); });
    missing.resize(std::min(wanted, missing.size()));
    if (!make_room(0, missing.size()))
      return round == 0 ? std::nullopt : std::optional(brought);
    insert(0, missing);
    brought += missing.size();
    std::vector<bool> present(window.size());
    std::transform(window.begin(), window.end(), present.begin(), [&](chunk c) { return first().holds(c); });
    wanted = objects_to_refill(present);
  }
  return brought;
}

bool tier_cache::make_room(size_t place, uint64_t chunks) {
  size_t below = place + 1;
  return tiers_[place].contents.make_room(chunks, [&](chunk leaving) {
    if (below < tiers_.size() && tiers_[below].rules.writes == tier_writes::on_eviction)
      offer(below, {&leaving, 1});
  });
}

/// The rule is applied to all chunks before any is inserted, so that none is admitted because its parent just
/// was. No chunk is admitted after a refused one, because it could not be found.
void tier_cache::offer(size_t place, std::span<const chunk> run) {
  const auto& [contents, rules] = tiers_[place];
  std::vector<chunk> offered;
  std::copy_if(run.begin(), run.end(), std::back_inserter(offered),
               [&](chunk c) { return !contents.holds(c); });
  std::span<const chunk> asked(offered);
  if (rules.admission == admission_rule::beats_victim)
    asked = asked.subspan(std::min<size_t>(contents.room(), asked.size()));
  size_t refused = asked.size() - tracker_.admitted(tier_at(place), asked, rules.admission);
  counts_.disk_refused += refused;
  auto taken = std::span<const chunk>(offered).first(offered.size() - refused);
  in_runs(taken, shape_.window_chunks, [&](std::span<const chunk> window) {
    if (make_room(place, window.size())) {
      insert(place, window);
      counts_.disk_written += window.size();
    } else {
      counts_.disk_refused += window.size();
    }
    return true;
  });
}

/// Inserts the last chunk first, as the daemon does.
void tier_cache::insert(size_t place, std::span<const chunk> window) {
  for (size_t i = window.size(); i-- > 0;)
    tiers_[place].contents.insert(window[i]);
}

bool tier_contents::make_room(uint64_t chunks, const std::function<void(chunk)>& leaving) {
  if (chunks > capacity_)
    return false;
  while (!has_room(chunks)) {
    auto victims = tracker_.victims(tier_, used_ + chunks - capacity_);
    if (victims.empty())
      return false;
    for (chunk c : victims) {
      if (leaving)
        leaving(c);
      tracker_.erase(tier_, c);
      resident_[c] = false;
      --used_;
      ++evicted_;
    }
  }
  return true;
}

void tier_contents::insert(chunk which) {
  assert(!resident_[which] && has_room(1));
  tracker_.insert(tier_, which);
  resident_[which] = true;
  ++used_;
}

namespace {

void set_policy(eviction_tracker& tracker, tier_number tier, const std::string& name) {
  auto known = tracker.set_policy(tier, name);
  assert(known);
  (void) known;
}

} // namespace

chunk_tracker::chunk_tracker(const workload& trace, const tracker_options& options)
    : of_(trace), options_(options), tracker_(options.seed, options.remember) {
  for (size_t tier = 0; tier < options.policies.size(); ++tier)
    set_policy(tracker_, tier_at(tier), options.policies[tier]);
}

entry_key chunk_tracker::key_of(chunk which) {
  if (which == no_chunk)
    return {};
  return {uint64_t{which} + 1, terrace::detail::mix64(uint64_t{which} + 1)};
}

void chunk_tracker::begin(const request& next) {
  now_ns_ = next.facts.at_ns;
  end_those_due();
  chain_.clear();
  for (chunk c : of_.chain(next))
    chain_.push_back(key_of(c));
  request_hints hints;
  hints.session = next.facts.session;
  hints.turn = next.facts.turn;
  hints.space = next.facts.space;
  present_.number = tracker_.begin_request(chain_, hints, now_ns_);
  present_.end_ns = now_ns_ + options_.token_ns * next.facts.output_tokens;
  present_.outcome = {next.facts.output_tokens, next.facts.reason, next.facts.session_closed,
                      next.facts.think_time_ns};
}

void chunk_tracker::finish() {
  answering_.push(present_);
  end_those_due();
}

void chunk_tracker::end_those_due() {
  while (!answering_.empty() && answering_.top().end_ns <= now_ns_) {
    const open_request& due = answering_.top();
    tracker_.end_request(due.number, due.outcome, due.end_ns);
    answering_.pop();
  }
}

void chunk_tracker::insert(tier_number tier, chunk which) {
  tracker_.insert(tier, {key_of(which), key_of(of_.parent(which)), options_.object_bytes}, now_ns_,
                  present_.number);
}

std::vector<chunk> chunk_tracker::victims(tier_number tier, uint64_t chunks) {
  std::vector<chunk> named;
  for (const victim& v : tracker_.victims(tier, {chunks * options_.object_bytes, present_.number}, now_ns_))
    named.push_back(chunk_of(v.key));
  return named;
}

size_t chunk_tracker::admitted(tier_number tier, std::span<const chunk> offered, admission_rule rule) {
  offered_.clear();
  for (chunk c : offered)
    offered_.push_back({key_of(c), key_of(of_.parent(c)), options_.object_bytes});
  return tracker_.admitted(tier, offered_, rule, now_ns_);
}

} // namespace terrace::simulate
