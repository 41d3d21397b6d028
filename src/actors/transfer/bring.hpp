// The one way of objects from tier to tier: loads, prefetches, what is written through, demoted, given back and moved.
//
//   auto failure = co_await bring(self, pass, from, to);
//
// 1. The tier of arrival reserves space (`acquire_request`). 2. Objects on their way out of host memory are confirmed by the tier
// that has them. 3. Movers copy, those of several tiers in parallel. 4. Objects on their way into host memory are confirmed.
// 5. The tier of arrival publishes what came (`publish_request`), unless the passage keeps it to itself.
#pragma once

#include "actors/transfer/transfer_steps.hpp"
#include "base/eviction_types.hpp"
#include "transfer/passage.hpp"

#include <cassert>
#include <utility>
#include <vector>

namespace terrace::actors {

/// The end of a passage at the tier of this kind. `from`: the tiers of a group, or the only one.
inline const tier_handle& end_at(const trust_group& from, tier_kind kind) { return *from.tier(kind); }
inline const tier_handle& end_at(const tier_handle& from, tier_kind) { return from; }

/// What the tiers of the group that movers read from have of the objects, held there: where a passage into host memory begins.
template <class Self>
task<result<tier_holds>> hold_below(Self self, const trust_group& group, batch_ptr objects,
                                    bool note_access) {
  std::vector<question<tier_actor, probe_request>> questions;
  for (const tier_handle& tier : group.tiers())
    if (tier.reads_below())
      questions.push_back({tier.tier, {objects, true, note_access}});
  auto answers = co_await ask_all<probe_answer>(self, std::move(questions), "tier");
  tier_holds below;
  for (auto& found : answers) {
    if (!found)
      co_return tl::unexpected(found.error());
    if (found->held)
      below.push_back({found->tier, std::move(found->held)});
  }
  co_return below;
}

namespace detail {

/// Removes from the passage what is no longer published where it comes from.
template <class Self, class From>
task<error> confirm_parts(Self self, passage& pass, const From& from) {
  std::vector<question<tier_actor, confirm_request>> questions;
  for (const passage::part& part : pass.parts())
    questions.push_back({end_at(from, part.tier).tier, pass.confirmation(part)});
  auto confirmed = co_await ask_all<confirm_answer>(self, std::move(questions), "tier");
  for (size_t k = 0; k < confirmed.size(); ++k) {
    if (!confirmed[k])
      co_return confirmed[k].error();
    pass.add_confirmed(k, confirmed[k]->present);
  }
  co_return error{};
}

/// Has the movers copy the objects, and tells the tiers which could not be.
template <class Self, class From>
task<error> move_parts(Self self, passage& pass, const From& from, const tier_handle& to) {
  assert(pass.parts().size() <= tiers_max); // one request to each mover
  std::vector<result<move_answer>> moved;
  if (pass.planned().way == direction::into_host) {
    std::vector<question<mover_actor, read_request>> reads;
    for (const passage::part& part : pass.parts())
      reads.push_back({end_at(from, part.tier).mover, pass.read(part)});
    moved = co_await ask_all<move_answer>(self, std::move(reads), "mover of a tier");
  } else {
    std::vector<question<mover_actor, write_request>> writes;
    for (const passage::part& part : pass.parts())
      writes.push_back({to.mover, pass.write(part)});
    moved = co_await ask_all<move_answer>(self, std::move(writes), "mover of a tier");
  }
  if (auto ended = why_ended(pass.planned().context, pass.planned().name); ended.code != errc::ok)
    co_return ended;
  for (size_t k = 0; k < moved.size(); ++k) {
    if (auto failure = failure_of(moved[k]); failure.code != errc::ok)
      co_return failure;
    auto reports = pass.add_outcomes(k, moved[k]->outcomes);
    if (!reports.damaged.ids.empty())
      self->send(end_at(from, pass.parts()[k].tier).tier, std::move(reports.damaged));
    if (!reports.stalled.ids.empty())
      self->send(to.tier, std::move(reports.stalled));
  }
  co_return error{};
}

} // namespace detail

/// Brings the objects of the passage to the tier `to`. An error: the space was refused (`passage::refused`), the passage's
/// request has ended, or an actor has. No error does not say that everything arrived: the passage does.
template <class Self, class From>
task<error> bring(Self self, passage& pass, const From& from, const tier_handle& to) {
  const bool out = pass.planned().way == direction::out_of_host;
  auto wanted = pass.space();
  const char* arrival = out ? "tier below" : "host tier";
  auto acquired = co_await ask<acquire_answer>(self, to.tier, std::move(wanted), arrival);
  if (!acquired)
    co_return acquired.error();
  if (!pass.add_space(std::move(*acquired)))
    co_return pass.refused();
  if (out && !pass.empty()) {
    auto failure = co_await detail::confirm_parts(self, pass, from);
    if (failure.code != errc::ok)
      co_return failure;
  }
  if (pass.empty())
    co_return error{};
  auto failure = co_await detail::move_parts(self, pass, from, to);
  if (failure.code != errc::ok)
    co_return failure;
  if (!out && !pass.empty()) {
    auto unconfirmed = co_await detail::confirm_parts(self, pass, from);
    if (unconfirmed.code != errc::ok)
      co_return unconfirmed;
  }
  if (!pass.arrived() || pass.empty())
    co_return error{};
  auto complete = pass.publication();
  auto published = co_await ask<publish_answer>(self, to.tier, std::move(complete), arrival);
  if (!published)
    co_return published.error();
  pass.add_published(*published);
  co_return error{};
}

} // namespace terrace::actors
