#include "actors/transfer/load_window.hpp"
#include "transfer/below_reading.hpp"

#include <algorithm>

namespace terrace::actors {

/// Takes the answer of the host tier.
void keep(load_window& window, const acquire_answer& acquired) {
  window.places.assign(acquired.states.size(), {});
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::held)
      window.places[i] = acquired.places[i];
  window.holds = {acquired.held};
}

/// The error if a request may not wait for memory held by leases and their readers.
error no_room(const load_job& job, const load_course& course, uint64_t bytes) {
  std::string own;
  if (job.account)
    own = " (those of this connection " + std::to_string(job.account->bytes()) + ")";
  return {errc::no_space,
          "leases and their readers hold " + std::to_string(course.others_hold) + own + " of " +
              std::to_string(job.group->memory->size()) + " bytes of host memory, and " +
              std::to_string(bytes) +
              " more would leave no room for other clients: load into a region, or release leases"};
}

bool may_stay(const load_job& job, load_window& window, uint64_t held_bytes) {
  if (job.runs)
    return true;
  if (job.account) {
    window.claimed.emplace(job.account->claim_for(window.places, held_bytes_max(job)));
    if (!window.claimed->complete())
      return false;
  }
  if (job.group->tiers().size() == 1 || held_bytes <= held_bytes_max(job))
    return true;
  hold_ptr leased = held_in(job.leased, tier_kind::host);
  for (size_t i = 0; i < window.size(); ++i) // what the lease already holds needs no additional memory
    if (!leased || !leased->places()[window.begin + i].present())
      return false;
  return true;
}

namespace {

/// A chain longer than the available host memory cannot stay there: half of what is available is kept, and
/// the rest is streamed instead of evicting everything else. Memory held by leases and other transfers is not
/// available.
bool passes(const load_job& job, const load_course& course) {
  uint64_t size = job.group->memory->size();
  uint64_t room = size - std::min(size, course.others_hold);
  uint64_t bytes = 0;
  for (uint64_t each : job.objects->payload_bytes)
    bytes += physical_bytes_for(each);
  return job.runs && bytes > room && course.promoted >= room / 2;
}

/// The part of a lease's hold that belongs to the window; shares the lease's ownership.
hold_ptr window_of(const hold_ptr& held, size_t begin, size_t end) {
  auto places = std::vector<object_place>(held->places().begin() + static_cast<ptrdiff_t>(begin),
                                          held->places().begin() + static_cast<ptrdiff_t>(end));
  return hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)),
                  [held](object_hold* part) { delete part; });
}

/// The objects of the window that the tiers below have, held.
task<result<tier_holds>> hold_below(load_pointer self, const load_job& job, const load_window& window) {
  tier_holds below;
  if (leased_below(job)) {
    for (const tier_hold& one : job.leased)
      if (one.tier != tier_kind::host)
        below.push_back({one.tier, window_of(one.held, window.begin, window.end)});
    co_return below;
  }
  std::vector<question<tier_actor, probe_request>> questions;
  for (const tier_parts& tier : job.group->tiers())
    if (tier.mover && tier.reads())
      questions.push_back({tier.tier, {window.objects, true, job.note_access}});
  auto answers = co_await ask_all<probe_answer>(self, std::move(questions), "tier");
  for (auto& found : answers) {
    if (!found)
      co_return tl::unexpected(found.error());
    if (found->held)
      below.push_back({found->tier, std::move(found->held)});
  }
  co_return below;
}

/// Space for exactly the objects that tiers below hold and host memory lacks. None if there is no space and
/// the request may not wait.
task<result<acquire_answer>> acquire_space(load_pointer self, const load_job& job, load_course& course,
                                           load_window& window, const below_reading& reading,
                                           bool delivered_some) {
  acquire_request request;
  request.objects = window.objects;
  request.note_access = false;
  request.context = job.context;
  request.may_fill.resize(window.size());
  uint64_t wanted = 0;
  for (size_t i = 0; i < request.may_fill.size(); ++i) {
    request.may_fill[i] = reading.has(i);
    if (request.may_fill[i] && !window.places[i].present())
      wanted += physical_bytes_for(window.objects->payload_bytes[i]);
  }
  if (!job.runs) {
    request.may_wait = !delivered_some; // a waiting request holds nothing
    if (job.account)
      window.claimed_below.emplace(job.account->claim_for(wanted, held_bytes_max(job)));
    bool fits = !window.claimed_below || window.claimed_below->complete();
    if (!fits || course.others_hold + wanted > held_bytes_max(job)) {
      course.full = delivered_some;
      co_return tl::unexpected(no_room(job, course, wanted));
    }
  }
  auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(request), "host tier");
  if (auto failure = failure_of(acquired); failure.code != errc::ok) {
    course.full = !job.runs && delivered_some && failure.code == errc::no_space;
    co_return tl::unexpected(failure);
  }
  co_return acquired;
}

/// Damaged objects are dropped from their tier.
void report(load_pointer self, const load_job& job, const tier_parts& from, below_reading::unread lost) {
  if (!lost.damaged.ids.empty())
    self->send(from.tier, std::move(lost.damaged));
  if (!lost.stalled.ids.empty())
    self->send(job.group->host, std::move(lost.stalled));
}

/// Reads the reserved objects into host memory, from all tiers in parallel, and keeps in `reading` those that
/// were read and are still published. Objects cleared from their tier meanwhile are not brought back.
task<error> read_reserved(load_pointer self, const load_job& job, load_window& window,
                          below_reading& reading) {
  std::vector<const tier_parts*> tiers;
  std::vector<question<mover_actor, read_request>> reads;
  for (const below_reading::part& part : reading.parts()) {
    tiers.push_back(job.group->tier(part.tier));
    reads.push_back({tiers.back()->mover, reading.read(part, job.in, job.context, *job.group->memory)});
  }
  auto read = co_await ask_all<move_answer>(self, std::move(reads), "mover of a tier");
  if (auto failure = ended(job.context, "load"); failure.code != errc::ok)
    co_return failure;
  std::vector<question<tier_actor, confirm_request>> confirms;
  for (size_t k = 0; k < tiers.size(); ++k) {
    if (auto failure = failure_of(read[k]); failure.code != errc::ok)
      co_return failure;
    auto lost = reading.take_outcomes(k, read[k]->outcomes);
    for (size_t i : lost.objects)
      window.lost[i] = true;
    report(self, job, *tiers[k], std::move(lost));
    confirms.push_back({tiers[k]->tier, reading.confirmation(reading.parts()[k])});
  }
  auto confirmed = co_await ask_all<confirm_answer>(self, std::move(confirms), "tier");
  for (size_t k = 0; k < tiers.size(); ++k) {
    if (!confirmed[k])
      co_return confirmed[k].error();
    reading.take_confirmed(k, confirmed[k]->present);
    for (size_t i : reading.parts()[k].objects)
      window.source[i] = tiers[k]->kind;
  }
  co_return error{};
}

/// Objects read and found intact are published and held, or passed through. `others`: the window waits for
/// others next, and must not keep objects that are not visible.
task<error> publish_read(load_pointer self, const load_job& job, load_course& course, load_window& window,
                         const below_reading& reading, bool others) {
  auto request = reading.publication();
  request.hold = true;
  request.in = job.in;
  if (job.context)
    request.inference = job.context->inference;
  std::vector<size_t> objects; // in the order of the request
  for (const below_reading::part& part : reading.parts())
    objects.insert(objects.end(), part.objects.begin(), part.objects.end());
  for (size_t i : objects)
    window.places[i] = reading.acquired().places[i];
  if (!others && passes(job, course)) {
    window.passing = reading.acquired().reserved;
    co_return error{};
  }
  auto published = co_await ask<publish_answer>(self, job.group->host, std::move(request), "host tier");
  if (!published)
    co_return published.error();
  for (size_t n = 0; n < objects.size(); ++n) {
    const object_place& place = published->held->places()[n];
    window.places[objects[n]] = place;
    course.promoted += physical_bytes_for(place.payload_bytes);
  }
  window.holds.push_back(published->held);
  co_return error{};
}

} // namespace

bool may_be_below(const load_job& job) {
  const auto& tiers = job.group->tiers();
  return std::any_of(tiers.begin(), tiers.end(),
                     [](const tier_parts& tier) { return tier.mover && tier.reads(); });
}

bool leased_below(const load_job& job) {
  return std::any_of(job.leased.begin(), job.leased.end(),
                     [](const tier_hold& one) { return one.tier != tier_kind::host; });
}

task<result<bool>> bring_from_below(load_pointer self, const load_job& job, load_course& course,
                                    load_window& window, bool delivered_some) {
  window.holds.clear(); // a waiting request holds nothing
  auto below = co_await hold_below(self, job, window);
  if (!below)
    co_return tl::unexpected(below.error());
  below_reading reading(window.objects, std::move(*below));
  auto acquired = co_await acquire_space(self, job, course, window, reading, delivered_some);
  if (!acquired)
    co_return tl::unexpected(acquired.error());
  reading.take_space(std::move(*acquired));
  keep(window, reading.acquired());
  window.first_left = std::min(window.first_left, reading.first_left());
  bool others = reading.others_write();
  if (reading.empty())
    co_return others;
  auto unread = co_await read_reserved(self, job, window, reading);
  if (unread.code != errc::ok)
    co_return tl::unexpected(unread);
  if (reading.empty())
    co_return others;
  auto failure = co_await publish_read(self, job, course, window, reading, others);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  co_return others;
}

} // namespace terrace::actors
