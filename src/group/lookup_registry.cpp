#include "group/lookup_registry.hpp"

#include <utility>

namespace terrace {

void lookup_registry::tell(const lookup_outcome_ptr& outcome, const told& done) {
  if (outcome->failure.code != errc::ok)
    done(outcome->failure, nullptr);
  else if (outcome->leased && outcome->held.expired())
    done({errc::gone, "the lookup was answered, and its lease has ended since"}, nullptr);
  else
    done({}, outcome);
}

result<void> lookup_registry::begin(const lookup_id& id, context_ptr looks_up) {
  entry& known = lookups_[id];
  if (known.looks_up)
    return fail(errc::bad_request, "a lookup with this lookup_id is in progress; expected a unique id");
  known.looks_up = std::move(looks_up);
  known.outcome = nullptr; // the id is reused, so the earlier result is dropped
  return {};
}

void lookup_registry::finish(const lookup_id& id, const context_ptr& looked_up, lookup_outcome_ptr outcome) {
  auto found = lookups_.find(id);
  if (found == lookups_.end() || !looked_up || found->second.looks_up != looked_up)
    return;
  found->second.looks_up = nullptr;
  found->second.outcome = outcome;
  answered_chunks_ += outcome->plan.chunk_tiers.size();
  auto waiters = std::exchange(found->second.waiters, {});
  answered_.emplace_back(id, outcome);
  forget_oldest();
  for (const waiter& who : waiters)
    tell(outcome, who.done);
}

void lookup_registry::forget_oldest() {
  while (answered_.size() > answered_max || answered_chunks_ > answered_chunks_max) {
    auto& [id, outcome] = answered_.front();
    answered_chunks_ -= outcome->plan.chunk_tiers.size();
    if (auto found = lookups_.find(id); found != lookups_.end() && found->second.outcome == outcome)
      lookups_.erase(found);
    answered_.pop_front();
  }
}

void lookup_registry::await(const lookup_id& id, context_ptr waits, told done) {
  entry& known = lookups_[id];
  if (known.outcome)
    tell(known.outcome, done);
  else
    known.waiters.push_back({std::move(waits), std::move(done)});
}

bool lookup_registry::cancel(const lookup_id& id) {
  auto found = lookups_.find(id);
  if (found == lookups_.end())
    return false;
  if (const auto& outcome = found->second.outcome) {
    if (!outcome->leased || outcome->held.expired())
      return false;
    if (outcome->end_lease)
      outcome->end_lease();
    auto cancelled = std::make_shared<lookup_outcome>();
    cancelled->failure = {errc::gone, "the lookup was answered, and cancelled since"};
    found->second.outcome = std::move(cancelled);
    answered_.emplace_back(id, found->second.outcome);
    return true;
  }
  errc expected = errc::ok;
  return found->second.looks_up &&
         found->second.looks_up->ended.compare_exchange_strong(expected, errc::cancelled);
}

void lookup_registry::sweep() {
  for (auto at = lookups_.begin(); at != lookups_.end();) {
    std::erase_if(at->second.waiters, [](const waiter& who) {
      if (who.context->live())
        return false;
      who.done(
          {who.context->ended.load(), "no lookup with this lookup_id was answered before the request ended"},
          nullptr);
      return true;
    });
    bool unknown = !at->second.looks_up && !at->second.outcome && at->second.waiters.empty();
    at = unknown ? lookups_.erase(at) : std::next(at);
  }
}

} // namespace terrace
