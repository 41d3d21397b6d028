#include "actors/transfer/transfer_actors.hpp"

#include "actors/transfer/transfer_steps.hpp"
#include "transfer/store_window.hpp"
#include "transfer/windows.hpp"
#include "transfer/write_through_messages.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <vector>

namespace terrace::actors {

// Named, since a template's frame has it.
struct store_state {
  const char* name = "store";
  task<> progress;
};

namespace {

using store_pointer = caf::stateful_actor<store_state>*;

/// A credit to write a window to a tier below.
struct tier_credit {
  write_through_actor to;
  credit_ptr credit;
};

using rest = store_window::rest;

/// Holds what is present, copies and publishes what is absent, and passes that to write-through.
task<result<rest>> store_round(store_pointer self, const store_job& job, store_window& window,
                               const std::vector<tier_credit>& credits, store_result& done) {
  bool smaller = window.objects()->size() > job.objects_per_chunk; // see may_shrink
  auto wanted = window.space(job.context, smaller);
  auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(wanted), "host tier");
  if (auto failure = failure_of(acquired); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  rest left = window.rest_of(*acquired);
  if (!store_window::any_reserved(*acquired))
    co_return left;

  auto copy =
      window.copy(*acquired, job.runs, *job.group->memory, !credits.empty()); // tiers below need the sums
  copy.outside = job.source;
  copy.context = job.context;
  auto copied = co_await copy_by(self, *job.group, std::move(copy));
  if (auto failure = failure_of(copied); failure.code != errc::ok)
    co_return tl::unexpected(failure); // the reservation ends with `acquired`: nothing of it was visible

  auto checksums = store_window::checksums(*acquired, copied->checksums);
  uint64_t bytes = 0;
  auto complete = window.publication(*acquired, bytes);
  done.bytes += bytes;
  job.group->tiers().front().probe->written(bytes);
  complete.hold = !credits.empty();
  complete.space = job.space;
  if (job.context)
    complete.inference = job.context->inference;
  // The reservation ends after the tier has published.
  auto published = co_await ask<publish_answer>(self, job.group->host, std::move(complete), "host tier");
  if (!published)
    co_return tl::unexpected(published.error());
  acquired->reserved->note_published(published->published);
  job.group->announced->stored(); // here, because whoever asked for the store may be gone
  for (const tier_credit& each : credits)
    for (auto& part :
         parts_of(write_through_notice{job.space, window.objects(), published->held, each.credit, checksums},
                  job.objects_per_chunk, job.group->window_bytes))
      self->send(each.to, std::move(part));
  co_return left;
}

/// Repeats rounds until everything is present or others have stored it.
task<error> store_rounds(store_pointer self, const store_job& job, store_window& window,
                         const std::vector<tier_credit>& credits, store_result& done) {
  while (true) {
    if (auto failure = why_ended(job.context, "store"); failure.code != errc::ok)
      co_return failure;
    auto left = co_await store_round(self, job, window, credits, done);
    if (!left)
      co_return left.error();
    auto next = window.after_round(*left);
    if (next == store_window::next::done)
      co_return error{};
    if (next == store_window::next::again)
      continue;
    await_request others{window.objects(), job.context};
    auto finished = co_await ask<await_answer>(self, job.group->host, std::move(others), "host tier");
    if (auto failure = failure_of(finished); failure.code != errc::ok)
      co_return failure;
    next = window.after_wait(finished->abandoned);
    if (next == store_window::next::done)
      co_return error{};
    if (next == store_window::next::give_up)
      co_return error{errc::busy, "other clients kept abandoning stores of the same chunks; try again"};
  }
}

/// Credits of the tiers below for the window, before it takes any memory. Always in the order of the tiers,
/// so that two stores cannot wait for each other.
task<error> take_credits(store_pointer self, const store_job& job, const store_window& window,
                         std::vector<tier_credit>& credits) {
  for (const tier_handle& tier : job.group->tiers()) {
    if (tier.demotion != demotion_mode::write_through)
      continue;
    if (!tier.writes()) {
      if (tier.offers_again)
        tier.offers_again->store(
            true, std::memory_order_relaxed); // it lacks them: it gets them when they are used again
      continue;
    }
    write_credit_request wanted{window.physical_bytes(), job.context};
    const write_through_actor& writer = tier.write_through;
    auto given = co_await ask<write_credit_answer>(self, writer, std::move(wanted), "write-through");
    if (auto failure = failure_of(given); failure.code != errc::ok)
      co_return failure;
    credits.push_back({writer, given->credit});
  }
  co_return error{};
}

/// Objects behind the window for which there is no room are refused for the same reason, though the tier was not asked.
void remember_rest(const store_job& job, const transfer_window& refused) {
  constexpr size_t objects_max = 1'024; // the log has room for 65,536 in all
  auto& log = job.group->events->departures();
  const auto told = log.find(to_entry_key(refused.objects->keys.back()));
  if (!told || !told->refused)
    return;
  const auto& keys = job.objects->keys;
  const size_t end = std::min(keys.size(), refused.end + objects_max);
  for (size_t i = refused.end; i < end; ++i)
    log.add_refusal(to_entry_key(keys[i]), told->from, *told->refused);
}

task<error> store_all(store_pointer self, const store_job& job, store_result& done) {
  unsigned halvings = 0; // of the window, because there was no space for more
  const auto& window_bytes = job.source.device ? job.group->device_window_bytes : job.group->window_bytes;
  for (size_t begin = 0; begin != job.objects->size();) {
    auto part = window_at(job.objects, job.objects_per_chunk, begin, window_bytes >> std::min(halvings, 63U));
    store_window window(begin, part.objects);
    std::vector<tier_credit> credits;
    auto refused = co_await take_credits(self, job, window, credits);
    if (refused.code != errc::ok)
      co_return refused;
    auto failure = co_await store_rounds(self, job, window, credits, done);
    if (may_shrink(part, job.objects_per_chunk, job.context, failure)) {
      ++halvings;
      continue;
    }
    if (failure.code == errc::no_space)
      remember_rest(job, part);
    if (failure.code != errc::ok)
      co_return failure;
    auto chunks = window.count(job.objects_per_chunk);
    done.stored_chunks += chunks.stored;
    done.present_chunks += chunks.present;
    begin = part.end;
    halvings -= halvings == 0 ? 0 : 1; // more may fit again
  }
  co_return error{};
}

caf::behavior store_behavior(store_pointer self) { return transfer_behavior(self, store_all); }

} // namespace

caf::actor spawn_store(caf::actor_system& system) { return system.spawn(store_behavior); }

} // namespace terrace::actors
