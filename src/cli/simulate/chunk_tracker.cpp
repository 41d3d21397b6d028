#include "cli/simulate/chunk_tracker.hpp"

#include <cassert>

namespace terrace::simulate {

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
