#include "actors/transfer/store_actor.hpp"

#include "actors/transfer/transfer_steps.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

struct store_state {
  const char* name = "store";
  task<> progress;
};

using self_pointer = caf::stateful_actor<store_state>*;

/// A credit to write a window to a tier below.
struct tier_credit {
  write_through_actor to;
  credit_ptr credit;
};

/// A window in progress.
struct window_in_work : transfer_window {
  std::vector<bool> copied;         ///< parallel to its objects
  std::vector<tier_credit> credits; ///< of the tiers below that it will be written to
  int awaited = 0;                  ///< rounds in which others were writing some of its objects
  int evicted = 0;                  ///< rounds in which objects were evicted while it waited for space
};

/// What remains after a round.
enum class rest : uint8_t { nothing, evicted, written_by_others };

rest rest_of(const acquire_answer& acquired) {
  auto any = [&](acquired_state what) {
    return std::find(acquired.states.begin(), acquired.states.end(), what) != acquired.states.end();
  };
  return any(acquired_state::pending)  ? rest::written_by_others
         : any(acquired_state::absent) ? rest::evicted // it was present when the space was requested
                                       : rest::nothing;
}

write_credit_request credit_for(const store_job& job, const window_in_work& window) {
  write_credit_request request;
  for (uint64_t each : window.objects->payload_bytes)
    request.bytes += physical_bytes_for(each);
  request.context = job.context;
  return request;
}

acquire_request space_for(const store_job& job, const window_in_work& window) {
  acquire_request request;
  request.objects = window.objects;
  bool told = job.context && job.context->inference != 0;
  request.note_access =
      window.awaited + window.evicted == 0 && !told; // otherwise its inference is the access
  request.context = job.context;
  return request;
}

copy_request copy_into(const store_job& job, const window_in_work& window, const acquire_answer& acquired) {
  copy_request request;
  request.direction = copy_direction::into_arena;
  request.outside = job.source;
  request.context = job.context;
  request.owners = {acquired.reserved};
  bool sums = !window.credits.empty(); // tiers below need them
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::reserved) {
      add_pieces(job, window, request, acquired.places[i], i);
      if (sums)
        request.object_ends.push_back(request.pieces.size());
    }
  return request;
}

/// Copies what was reserved.
publish_request publication_of(const store_job& job, window_in_work& window, const acquire_answer& acquired,
                               store_result& done) {
  publish_request request;
  if (job.context)
    request.inference = job.context->inference;
  request.places.resize(acquired.places.size());
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    if (acquired.states[i] != acquired_state::reserved)
      continue;
    request.places[i] = acquired.places[i];
    window.copied[i] = true;
    done.bytes += acquired.places[i].payload_bytes;
    job.group->tiers().front().probe->written(acquired.places[i].payload_bytes);
  }
  return request;
}

/// `sums`: of the copied payloads, in order, or empty. Returns them parallel to the window's objects.
std::vector<uint64_t> checksums_of(const acquire_answer& acquired, const std::vector<uint64_t>& sums) {
  std::vector<uint64_t> all(sums.empty() ? 0 : acquired.places.size());
  auto sum = sums.begin();
  for (size_t i = 0; i < all.size(); ++i)
    if (acquired.states[i] == acquired_state::reserved)
      all[i] = *sum++;
  return all;
}

/// Holds what is present, copies and publishes what is absent, and passes that to write-through.
task<result<rest>> store_round(self_pointer self, const store_job& job, window_in_work& window,
                               store_result& done) {
  auto wanted = space_for(job, window);
  auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(wanted), "host tier");
  if (auto failure = failure_of(acquired); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  rest left = rest_of(*acquired);
  auto& states = acquired->states;
  if (std::find(states.begin(), states.end(), acquired_state::reserved) == states.end())
    co_return left;

  auto copy = copy_into(job, window, *acquired);
  const copier_actor& copier = job.group->copiers->next();
  auto copied = co_await ask<copy_answer>(self, copier, std::move(copy), "copier");
  if (auto failure = failure_of(copied); failure.code != errc::ok)
    co_return tl::unexpected(failure); // the reservation ends with `acquired`: nothing of it was visible

  auto checksums = checksums_of(*acquired, copied->checksums);
  auto complete = publication_of(job, window, *acquired, done);
  complete.hold = !window.credits.empty();
  // The reservation ends after the tier has published.
  auto published = co_await ask<publish_answer>(self, job.group->host, std::move(complete), "host tier");
  if (!published)
    co_return tl::unexpected(published.error());
  for (const tier_credit& each : window.credits)
    self->send(each.to,
               write_through_notice{job.in, window.objects, published->held, each.credit, checksums});
  co_return left;
}

/// Repeats rounds until everything is present or others have stored it.
task<error> store_window(self_pointer self, const store_job& job, window_in_work& window,
                         store_result& done) {
  while (true) {
    if (auto failure = ended(job.context, "store"); failure.code != errc::ok)
      co_return failure;
    auto left = co_await store_round(self, job, window, done);
    if (!left)
      co_return left.error();
    if (*left == rest::nothing)
      co_return error{};
    if (*left == rest::evicted) {
      // A store does not compete with eviction forever: what keeps leaving has been stored, and was evicted
      // like any object.
      if (++window.evicted > window_attempts_max)
        co_return error{};
      continue;
    }
    if (++window.awaited > window_attempts_max)
      co_return error{errc::busy, "other clients kept abandoning stores of the same chunks; try again"};
    await_request others{window.objects, job.context};
    auto finished = co_await ask<await_answer>(self, job.group->host, std::move(others), "host tier");
    if (auto failure = failure_of(finished); failure.code != errc::ok)
      co_return failure;
  }
}

void count_chunks(const store_job& job, const window_in_work& window, store_result& done) {
  auto per_chunk = static_cast<ptrdiff_t>(job.objects_per_chunk);
  for (auto first = window.copied.begin(); first != window.copied.end(); first += per_chunk) {
    bool any = std::find(first, first + per_chunk, true) != first + per_chunk;
    ++(any ? done.stored_chunks : done.present_chunks);
  }
}

/// Credits of the tiers below for the window, before it takes any memory. Always in the order of the tiers,
/// so that two stores cannot wait for each other.
task<error> take_credit(self_pointer self, const store_job& job, window_in_work& window) {
  for (const tier_parts& tier : job.group->tiers()) {
    if (!tier.write_new || !tier.writes())
      continue;
    auto wanted = credit_for(job, window);
    const write_through_actor& writer = tier.write_through;
    auto given = co_await ask<write_credit_answer>(self, writer, std::move(wanted), "write-through");
    if (auto failure = failure_of(given); failure.code != errc::ok)
      co_return failure;
    window.credits.push_back({writer, given->credit});
  }
  co_return error{};
}

task<error> store_all(self_pointer self, const store_job& job, store_result& done) {
  window_in_work window;
  unsigned halvings = 0; // of the window, because there was no space for more
  for (size_t begin = 0; begin != job.objects->size();) {
    window = {};
    static_cast<transfer_window&>(window) =
        window_at(job, begin, job.group->window_bytes >> std::min(halvings, 63U));
    window.copied.resize(window.size());
    auto refused = co_await take_credit(self, job, window);
    if (refused.code != errc::ok)
      co_return refused;
    auto failure = co_await store_window(self, job, window, done);
    if (may_shrink(job, window, failure)) {
      ++halvings;
      continue;
    }
    if (failure.code != errc::ok)
      co_return failure;
    count_chunks(job, window, done);
    begin = window.end;
    halvings = 0;
  }
  co_return error{};
}

caf::behavior store_behavior(self_pointer self) { return transfer_behavior(self, store_all); }

} // namespace

caf::actor spawn_store(caf::actor_system& system) { return system.spawn(store_behavior); }

} // namespace terrace::actors
