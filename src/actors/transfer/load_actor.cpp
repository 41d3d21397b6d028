#include "actors/transfer/load_actor.hpp"

#include "actors/transfer/load_window.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

/// Each round that delivers nothing halves the window. A single present object is held immediately, so this
/// is reached only with chunks of many objects, and only by chance.
constexpr unsigned fruitless_max = 48;

/// True if the job's lease held the window's object `i`.
bool leased(const load_job& job, const load_window& window, size_t i) {
  return std::any_of(job.leased.begin(), job.leased.end(),
                     [&](const tier_hold& one) { return one.held->places()[window.begin + i].present(); });
}

/// Limits the window to the objects before the first missing one.
void cut_at_first_gap(load_window& window) {
  window.usable = static_cast<size_t>(std::find_if(window.places.begin(), window.places.end(),
                                                   [](const object_place& p) { return !p.present(); }) -
                                      window.places.begin());
}

// ---- a window ----

/// Runs until everything available of the window is in host memory, held or reserved.
task<error> bring_window(load_pointer self, const load_job& job, load_course& course, load_window& window,
                         bool delivered_some) {
  while (true) {
    if (auto failure = ended(job.context, "load"); failure.code != errc::ok)
      co_return failure;
    window.first_left = SIZE_MAX;
    window.claimed.reset();
    window.claimed_below.reset();
    acquire_request request;
    request.objects = window.objects;
    request.fill = false;
    request.note_access = job.note_access && window.awaited == 0;
    request.context = job.context;
    auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(request), "host tier");
    if (auto failure = failure_of(acquired); failure.code != errc::ok)
      co_return failure;
    keep(window, *acquired);
    course.others_hold = acquired->held_bytes;
    if (job.runs) // its own objects are in nobody's way for long
      for (const object_place& place : window.places)
        course.others_hold -= std::min(course.others_hold, place.physical_bytes);
    bool others = any(*acquired, acquired_state::pending);
    bool complete = !others && !any(*acquired, acquired_state::absent);
    bool fits = may_stay(job, window, acquired->held_bytes);
    acquired->held.reset(); // owned by the window
    if ((!complete || !fits) && !job.runs && !std::exchange(course.piecewise, true)) {
      window.holds.clear();
      co_return error{}; // in smaller windows, from the beginning
    }
    if (!fits) {
      course.full = delivered_some;
      co_return no_room(job, course, 0);
    }
    if (!complete && !others) {
      if (may_be_below(job)) {
        auto brought = co_await bring_from_below(self, job, course, window, delivered_some);
        if (!brought)
          co_return brought.error();
        others = *brought;
      } else {
        window.lost.assign(window.size(), leased_below(job));
      }
    }
    if (!others) {
      cut_at_first_gap(window);
      co_return error{};
    }
    // Others are writing some of it: release everything, wait for them, and start again; give up after
    // several rounds.
    window.holds.clear();
    if (++window.awaited > window_attempts_max) {
      if (job.held_by)
        co_return error{errc::busy,
                        "other clients kept writing the chunks that this load waits for; try again"};
      co_return error{};
    }
    await_request written{window.objects, job.context};
    auto finished = co_await ask<await_answer>(self, job.group->host, std::move(written), "host tier");
    if (auto failure = failure_of(finished); failure.code != errc::ok)
      co_return failure;
  }
}

copy_request copy_of(const load_job& job, const load_window& window) {
  copy_request request;
  request.direction = copy_direction::out_of_arena;
  request.outside = job.target;
  request.context = job.context;
  request.owners.assign(window.holds.begin(), window.holds.end());
  request.owners.push_back(window.passing);
  for (size_t i = 0; i < window.usable; ++i)
    add_pieces(request, *job.runs, *job.group->memory, window.begin + i, window.places[i]);
  return request;
}

/// Objects served from host memory may be missing in tiers below.
void offer_again(load_pointer self, const load_job& job, const load_window& window) {
  for (const tier_parts& tier : job.group->tiers())
    if (tier.second_looks && tier.second_looks->load(std::memory_order_relaxed) && tier.writes())
      self->send(tier.write_through, write_through_notice{job.in, window.objects, window.holds.front(), {}});
}

/// Accounts the window's first `objects` objects as delivered.
void account(load_pointer self, const load_job& job, const load_window& window, size_t objects,
             load_result& done) {
  for (size_t i = 0; i < objects; ++i) {
    uint64_t bytes = window.objects->payload_bytes[i];
    done.bytes += bytes;
    done.bytes_by_tier[static_cast<size_t>(window.source[i])] += bytes;
    job.group->tier(window.source[i])->probe->read(bytes);
  }
  done.chunks += objects / job.objects_per_chunk;
  if (!job.runs && objects != 0) {
    done.places.insert(done.places.end(), window.places.begin(),
                       window.places.begin() + static_cast<ptrdiff_t>(objects));
    for (const hold_ptr& each : window.holds)
      done.holds.push_back(job.account ? job.account->charge(each) : each);
  }
  if (!window.holds.empty() &&
      std::find(window.source.begin(), window.source.end(), tier_kind::host) != window.source.end())
    offer_again(self, job, window);
}

load_window next_window(const load_job& job, size_t begin, const load_course& course) {
  // Without a copy everything must be held at once; if it is in host memory already, that is one window.
  bool whole = !job.runs && !course.piecewise;
  uint64_t bytes_max = job.group->window_bytes >> std::min(course.fruitless, 63U);
  load_window window;
  static_cast<transfer_window&>(window) = window_at(job, begin, whole ? UINT64_MAX : bytes_max);
  window.source.resize(window.size(), tier_kind::host);
  window.lost.resize(window.size());
  return window;
}

task<error> load_all(load_pointer self, const load_job& job, load_result& done) {
  load_course course;
  for (size_t begin = 0; begin != job.objects->size();) {
    bool whole = !job.runs && !course.piecewise;
    auto window = next_window(job, begin, course);
    bool delivered_some = done.chunks != 0;
    auto failure = co_await bring_window(self, job, course, window, delivered_some);
    if (course.full)
      co_return error{}; // what is held already is the answer: the client continues after it
    if (may_shrink(job, window, failure)) {
      ++course.fruitless; // less may fit
      continue;
    }
    if (failure.code != errc::ok)
      co_return failure;
    if (whole && course.piecewise)
      continue;
    if (job.runs && window.usable != 0) {
      auto copy = copy_of(job, window);
      const copier_actor& copier = job.group->copiers->next();
      auto copied = co_await ask<copy_answer>(self, copier, std::move(copy), "copier");
      if (auto lost = failure_of(copied); lost.code != errc::ok)
        co_return lost;
    }
    size_t objects = window.usable - window.usable % job.objects_per_chunk;
    account(self, job, window, objects, done);
    begin += objects;
    if (objects == window.size())
      continue;
    if (window.usable != window.first_left) { // a tier lost the next object, or no tier ever had it
      if (window.usable < window.size() && !window.lost[window.usable] && leased(job, window, window.usable))
        co_return error{errc::gone, "chunks that the lease held were cleared"};
      if (window.usable < window.size()) {
        done.missing = window.begin + window.usable;
        done.damaged = window.lost[window.usable];
      }
      co_return error{};
    }
    course.fruitless = objects == 0 ? course.fruitless + 1 : 0;
    if (course.fruitless > fruitless_max)
      co_return error{errc::busy, "objects are evicted from host memory as fast as they are read; try again"};
  }
  co_return error{};
}

caf::behavior load_behavior(load_pointer self) { return transfer_behavior(self, load_all); }

} // namespace

caf::actor spawn_load(caf::actor_system& system) { return system.spawn(load_behavior); }

} // namespace terrace::actors
