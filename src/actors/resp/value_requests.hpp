// The requests behind value_transfer.hpp, as coroutines of the actor that asks.
#pragma once

#include "actors/resp/value_transfer.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "base/tier_properties.hpp"
#include "runtime/ask.hpp"
#include "tier/messages.hpp"
#include "transfer/store_window.hpp"

#include <algorithm>
#include <utility>

namespace terrace::actors {

/// Returns the failure of an answer, or of its request.
template <class Answer>
error failure_in(const result<Answer>& answer) {
  return answer ? answer->failure : answer.error();
}

/// Searches all tiers for the values, and holds them. A value that is being written is not found.
template <class Self>
task<result<found_values>> find_values(Self self, const value_subject& of) {
  found_values found;
  size_t missing = of.objects->size();
  for (const tier_handle& tier : of.group->tiers()) {
    if (missing == 0 || (tier.mover && !tier.reads()))
      continue;
    probe_request wanted{of.objects, true, true};
    const tier_actor& whom = tier.tier;
    auto answer = co_await ask<probe_answer>(self, whom, std::move(wanted), "tier");
    if (auto failure = failure_in(answer); failure.code != errc::ok)
      co_return tl::unexpected(failure);
    if (!answer->held)
      continue;
    found.holds.push_back({tier.kind, answer->held});
    missing = 0;
    for (size_t i = 0; i < of.objects->size(); ++i)
      missing += found.of(i) == nullptr ? 1 : 0;
  }
  co_return found;
}

/// Brings a value that a tier below holds into host memory. Nullopt: it is gone, or damaged.
template <class Self>
task<result<std::optional<held_value>>> bring_value(Self self, const value_subject& of, size_t value,
                                                    const tier_hold& from, caf::actor load) {
  const object_place& place = from.held->places()[value];
  auto one = std::make_shared<object_batch>();
  one->keys = {of.objects->keys[value]};
  one->parents.resize(1);
  one->payload_bytes = {place.payload_bytes};
  load_job job;
  job.group = of.group;
  job.space = of.space;
  job.objects = one;
  job.context = of.context;
  job.note_access = false;
  // Exactly the object that was found, because another one under its key may have another size.
  job.leased = {{from.tier, part_of(from.held, std::vector{place})}};
  auto loaded = co_await ask<load_result>(self, load, std::move(job), "load");
  if (!loaded)
    co_return tl::unexpected(loaded.error());
  if (loaded->failure.code != errc::ok && loaded->failure.code != errc::gone)
    co_return tl::unexpected(loaded->failure);
  if (loaded->chunks == 0)
    co_return std::optional<held_value>();
  auto holds = std::make_shared<std::vector<hold_ptr>>(std::move(loaded->holds));
  co_return std::optional<held_value>({loaded->places->front(), holds});
}

/// Removes whatever host memory has under the keys. If an object is being written there when host memory is
/// first asked, that write is awaited and its object removed as well. Marks what was removed.
template <class Self>
task<error> remove_from_host(Self self, const value_subject& of, std::vector<bool>& removed) {
  const tier_actor& tier = of.group->host;
  for (bool waited = false;; waited = true) {
    if (auto failure = why_ended(of.context, "removal"); failure.code != errc::ok)
      co_return failure;
    remove_request wanted{of.objects, false};
    auto gone = co_await ask<remove_answer>(self, tier, std::move(wanted), "tier");
    if (auto failure = failure_in(gone); failure.code != errc::ok)
      co_return failure;
    for (size_t i = 0; i < removed.size(); ++i)
      if (gone->removed[i])
        removed[i] = true;
    if (!gone->pending || waited)
      co_return error{}; // a writer that is there now has begun later
    await_request others{of.objects, of.context};
    auto written = co_await ask<await_answer>(self, tier, std::move(others), "tier");
    if (auto failure = failure_in(written); failure.code != errc::ok)
      co_return failure;
  }
}

/// Removes the values from all tiers below. An object being written there is an earlier value on its way down
/// from host memory: it will not be published. A tier that has nothing is not asked; whoever reserves there
/// later asks host memory afterwards.
template <class Self>
task<error> remove_below(Self self, const value_subject& of, std::vector<bool>& removed) {
  for (const tier_handle& tier : of.group->tiers()) {
    if (tier.kind == memory_tier || tier.index->surely_lacks(*of.objects))
      continue;
    const tier_actor& whom = tier.tier;
    remove_request wanted{of.objects};
    auto gone = co_await ask<remove_answer>(self, whom, std::move(wanted), "tier");
    if (auto failure = failure_in(gone); failure.code != errc::ok)
      co_return failure;
    for (size_t i = 0; i < removed.size(); ++i)
      if (gone->removed[i])
        removed[i] = true;
  }
  co_return error{};
}

/// Removes the values from all tiers. A value that was moving between tiers is found in the next round,
/// because each move reserves its place before it checks whether the object is still at its source: a move up
/// into host memory is found in the second round, and if the value was offered to a tier below from there, in
/// the third.
template <class Self>
task<error> remove_values(Self self, const value_subject& of, std::vector<bool>& removed) {
  constexpr int rounds_max = 4;
  removed.assign(of.objects->size(), false);
  for (int round = 0; round < rounds_max; ++round) {
    std::vector<bool> now(of.objects->size(), false);
    auto failure = co_await remove_from_host<Self>(self, of, now);
    if (failure.code == errc::ok) {
      failure = co_await remove_below<Self>(self, of, now);
    }
    if (failure.code != errc::ok)
      co_return failure;
    bool any = false;
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i])
        any = removed[i] = true;
    if (!any || of.group->tiers().size() == 1)
      co_return error{};
  }
  co_return error{};
}

/// Gets permission to add the values to what waits for the tiers below.
template <class Self>
task<error> take_credits_for(Self self, const value_subject& of, reserved_values& into) {
  uint64_t bytes = store_window(0, of.objects).physical_bytes();
  for (const tier_handle& tier : of.group->tiers()) {
    if (tier.demotion != demotion_mode::write_through || !tier.writes())
      continue;
    write_credit_request wanted{bytes, of.context};
    write_through_actor writer = tier.write_through;
    auto given = co_await ask<write_credit_answer>(self, writer, std::move(wanted), "write-through");
    if (auto failure = failure_in(given); failure.code != errc::ok)
      co_return failure;
    into.credits.push_back({writer, given->credit});
  }
  co_return error{};
}

/// Reserves space in host memory for the values, and removes earlier ones. From then on until the space is
/// published or given up, nobody else writes these keys, and nothing brings an earlier value back: host
/// memory takes none, and what a tier below has, or is writing, is removed there. (delayed: until there is
/// memory)
///
/// Returns false if others are writing some of the keys, and has none then. The caller reserves several keys one by one,
/// because a request that waits for one key while it has another could wait in a circle.
template <class Self>
task<result<bool>> reserve_values(Self self, const value_subject& of, reserved_values& into) {
  auto refused = co_await take_credits_for<Self>(self, of, into);
  if (refused.code != errc::ok)
    co_return tl::unexpected(refused);
  if (auto failure = why_ended(of.context, "store"); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  const tier_actor& host = of.group->host;
  acquire_request wanted;
  wanted.objects = of.objects;
  wanted.replace = true;
  wanted.note_access = false;
  wanted.context = of.context;
  auto space = co_await ask<acquire_answer>(self, host, std::move(wanted), "host tier");
  if (auto failure = failure_in(space); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  // Held or absent: somebody was writing it when the request came, and had written it or given it up when
  // there was space.
  bool whole = std::all_of(space->states.begin(), space->states.end(),
                           [](acquired_state state) { return state == acquired_state::reserved; });
  if (!whole)
    co_return false;
  into.space = std::move(*space);
  std::vector<bool> removed(of.objects->size());
  auto failure = co_await remove_below<Self>(self, of, removed);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  co_return true;
}

/// Waits until nobody writes the values.
template <class Self>
task<error> await_writers(Self self, const value_subject& of) {
  const tier_actor& host = of.group->host;
  await_request writers{of.objects, of.context};
  auto written = co_await ask<await_answer>(self, host, std::move(writers), "host tier");
  co_return failure_in(written);
}

/// Publishes values whose bytes are in their space, and has them written to the tiers below.
template <class Self>
task<error> publish_values(Self self, const value_subject& of, reserved_values& values) {
  publish_request complete;
  complete.places = values.space.places;
  complete.hold = !values.credits.empty();
  complete.space = of.space;
  uint64_t bytes = 0;
  for (const object_place& place : complete.places)
    bytes += place.payload_bytes;
  of.group->tiers().front().probe->written(bytes);
  const tier_actor& host = of.group->host;
  auto published = co_await ask<publish_answer>(self, host, std::move(complete), "host tier");
  if (auto failure = failure_in(published); failure.code != errc::ok)
    co_return failure;
  values.space.reserved->note_published(published->published);
  for (const reserved_values::credit_of& each : values.credits) {
    write_through_notice down{of.space, of.objects, published->held, each.credit};
    down.replaceable = true;
    self->send(each.to, std::move(down));
  }
  values.space.reserved = nullptr;
  co_return error{};
}

} // namespace terrace::actors
