#include "actors/transfer/load_window.hpp"

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

} // namespace

/// The objects of a window to be read from the tiers below, and their sources.
struct below_reading {
  tier_holds below;            ///< parallel to the window's objects
  acquire_answer acquired;     ///< the space in host memory
  std::vector<size_t> objects; ///< indices in the window: reserved, and present in a tier below
};

namespace {

/// The part of one tier.
struct tier_reading {
  const tier_parts* tier = nullptr;
  hold_ptr held;
  std::vector<size_t> objects;
};

/// The fastest tier below that has the window's object; `end` if none.
tier_holds::const_iterator fastest_of(const tier_holds& below, size_t object) {
  return std::find_if(below.begin(), below.end(),
                      [object](const tier_hold& one) { return one.held->places()[object].present(); });
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
                                           load_window& window, const tier_holds& below,
                                           bool delivered_some) {
  acquire_request request;
  request.objects = window.objects;
  request.note_access = false;
  request.context = job.context;
  request.may_fill.resize(window.size());
  uint64_t wanted = 0;
  for (size_t i = 0; i < request.may_fill.size(); ++i) {
    request.may_fill[i] = fastest_of(below, i) != below.end();
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

/// Divides the objects among the tiers.
std::vector<tier_reading> parts_of(const load_job& job, const below_reading& reading) {
  std::vector<tier_reading> parts;
  for (const tier_hold& one : reading.below)
    parts.push_back({job.group->tier(one.tier), one.held, {}});
  for (size_t i : reading.objects)
    parts[static_cast<size_t>(fastest_of(reading.below, i) - reading.below.begin())].objects.push_back(i);
  std::erase_if(parts, [](const tier_reading& part) { return part.objects.empty(); });
  return parts;
}

read_request read_of(const load_job& job, const load_window& window, const tier_reading& part,
                     const acquire_answer& acquired) {
  read_request request;
  request.in = job.in;
  request.context = job.context;
  request.owners = {acquired.reserved, part.held};
  for (size_t i : part.objects)
    request.objects.push_back(
        {window.objects->keys[i], part.held->places()[i], job.group->memory->at(acquired.places[i].offset)});
  return request;
}

/// Removes from the part what could not be read. Damaged objects are dropped from their tier.
void drop_unread(load_pointer self, const load_job& job, load_window& window, tier_reading& part,
                 const acquire_answer& acquired, const std::vector<move_outcome>& outcomes) {
  discard_notice damaged;
  detach_notice stalled;
  std::vector<size_t> good;
  for (size_t n = 0; n < part.objects.size(); ++n) {
    size_t i = part.objects[n];
    if (outcomes[n] == move_outcome::done) {
      good.push_back(i);
      continue;
    }
    window.lost[i] = true;
    if (outcomes[n] == move_outcome::failed)
      damaged.ids.push_back(part.held->places()[i].id);
    if (outcomes[n] == move_outcome::stalled)
      stalled.ids.push_back(acquired.places[i].id);
  }
  part.objects = std::move(good);
  if (!damaged.ids.empty())
    self->send(part.tier->tier, std::move(damaged));
  if (!stalled.ids.empty()) // others need not wait until the kernel returns their memory
    self->send(job.group->host, std::move(stalled));
}

confirm_request confirm_of(const tier_reading& part) {
  confirm_request request;
  for (size_t i : part.objects)
    request.ids.push_back(part.held->places()[i].id);
  return request;
}

/// Reads the reserved objects into host memory, from all tiers in parallel, and keeps in `reading` those that
/// were read and are still published. Objects cleared from their tier meanwhile are not brought back.
task<error> read_reserved(load_pointer self, const load_job& job, load_window& window,
                          below_reading& reading) {
  auto parts = parts_of(job, reading);
  reading.objects.clear();
  std::vector<question<mover_actor, read_request>> reads;
  for (const tier_reading& part : parts)
    reads.push_back({part.tier->mover, read_of(job, window, part, reading.acquired)});
  auto read = co_await ask_all<move_answer>(self, std::move(reads), "mover of a tier");
  if (auto failure = ended(job.context, "load"); failure.code != errc::ok)
    co_return failure;
  std::vector<question<tier_actor, confirm_request>> confirms;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (auto failure = failure_of(read[k]); failure.code != errc::ok)
      co_return failure;
    drop_unread(self, job, window, parts[k], reading.acquired, read[k]->outcomes);
    confirms.push_back({parts[k].tier->tier, confirm_of(parts[k])});
  }
  auto confirmed = co_await ask_all<confirm_answer>(self, std::move(confirms), "tier");
  for (size_t k = 0; k < parts.size(); ++k) {
    if (!confirmed[k])
      co_return confirmed[k].error();
    for (size_t n = 0; n < parts[k].objects.size(); ++n)
      if (confirmed[k]->present[n]) {
        reading.objects.push_back(parts[k].objects[n]);
        window.source[parts[k].objects[n]] = parts[k].tier->kind;
      }
  }
  co_return error{};
}

/// Objects read and found intact are published and held, or passed through. `others`: the window waits for
/// others next, and must not keep objects that are not visible.
task<error> publish_read(load_pointer self, const load_job& job, load_course& course, load_window& window,
                         const below_reading& reading, bool others) {
  publish_request request;
  request.hold = true;
  request.in = job.in;
  if (job.context)
    request.inference = job.context->inference;
  for (size_t i : reading.objects) {
    request.places.push_back(reading.acquired.places[i]);
    window.places[i] = reading.acquired.places[i];
  }
  if (!others && passes(job, course)) {
    window.passing = reading.acquired.reserved;
    co_return error{};
  }
  auto published = co_await ask<publish_answer>(self, job.group->host, std::move(request), "host tier");
  if (!published)
    co_return published.error();
  for (size_t n = 0; n < reading.objects.size(); ++n) {
    const object_place& place = published->held->places()[n];
    window.places[reading.objects[n]] = place;
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
  below_reading reading;
  auto below = co_await hold_below(self, job, window);
  if (!below)
    co_return tl::unexpected(below.error());
  reading.below = std::move(*below);
  auto acquired = co_await acquire_space(self, job, course, window, reading.below, delivered_some);
  if (!acquired)
    co_return tl::unexpected(acquired.error());
  reading.acquired = std::move(*acquired);
  keep(window, reading.acquired);
  for (size_t i = 0; i < reading.acquired.states.size(); ++i) {
    if (reading.acquired.states[i] == acquired_state::reserved)
      reading.objects.push_back(i);
    else if (reading.acquired.states[i] == acquired_state::absent &&
             fastest_of(reading.below, i) != reading.below.end())
      window.first_left = std::min(window.first_left, i);
  }
  bool others = any(reading.acquired, acquired_state::pending);
  if (reading.objects.empty())
    co_return others;
  auto unread = co_await read_reserved(self, job, window, reading);
  if (unread.code != errc::ok)
    co_return tl::unexpected(unread);
  if (reading.objects.empty())
    co_return others;
  auto failure = co_await publish_read(self, job, course, window, reading, others);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  co_return others;
}

} // namespace terrace::actors
