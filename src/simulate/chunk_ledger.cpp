#include "simulate/chunk_ledger.hpp"

#include <cassert>

namespace terrace::simulate {

namespace {

void set_policy(eviction_ledger& ledger, tier_number tier, const std::string& name) {
  auto known = ledger.set_policy(tier, name);
  assert(known);
  (void) known;
}

} // namespace

chunk_ledger::chunk_ledger(const workload& of, const ledger_options& options)
    : of_(of), options_(options), ledger_(options.seed, options.remember) {
  set_policy(ledger_, host_tier, options.host_policy);
  if (!options.disk_policy.empty())
    set_policy(ledger_, disk_tier, options.disk_policy);
}

entry_key chunk_ledger::key_of(chunk which) {
  if (which == no_chunk)
    return {};
  return {uint64_t{which} + 1, terrace::detail::mix64(uint64_t{which} + 1)};
}

void chunk_ledger::begin(const request& next) {
  now_ns_ = next.facts.at_ns;
  end_those_due();
  chain_.clear();
  for (chunk c : of_.chain(next))
    chain_.push_back(key_of(c));
  request_hints hints;
  hints.session = next.facts.session;
  hints.turn = next.facts.turn;
  hints.space = next.facts.space;
  present_.number = ledger_.begin_request(chain_, hints, now_ns_);
  present_.end_ns = now_ns_ + options_.token_ns * next.facts.output_tokens;
  present_.outcome = {next.facts.output_tokens, next.facts.reason, next.facts.session_closed,
                      next.facts.think_time_ns};
}

void chunk_ledger::finish() {
  answering_.push(present_);
  end_those_due();
}

void chunk_ledger::end_those_due() {
  while (!answering_.empty() && answering_.top().end_ns <= now_ns_) {
    const open_request& due = answering_.top();
    ledger_.end_request(due.number, due.outcome, due.end_ns);
    answering_.pop();
  }
}

void chunk_ledger::insert(tier_number tier, chunk which) {
  ledger_.insert(tier, {key_of(which), key_of(of_.parent(which)), options_.object_bytes}, now_ns_,
                 present_.number);
}

std::vector<chunk> chunk_ledger::victims(tier_number tier, uint64_t chunks) {
  std::vector<chunk> named;
  for (const victim& v : ledger_.victims(tier, {chunks * options_.object_bytes, present_.number}, now_ns_))
    named.push_back(chunk_of(v.key));
  return named;
}

size_t chunk_ledger::admitted(tier_number tier, std::span<const chunk> offered, admission_rule rule) {
  offered_.clear();
  for (chunk c : offered)
    offered_.push_back({key_of(c), key_of(of_.parent(c)), options_.object_bytes});
  return ledger_.admitted(tier, offered_, rule, now_ns_);
}

} // namespace terrace::simulate
