#include "actors/transfer/transfer_actors.hpp"

#include "actors/transfer/bring.hpp"
#include "actors/transfer/load_into_device.hpp"
#include "actors/transfer/transfer_steps.hpp"
#include "base/tier_properties.hpp"
#include "runtime/task.hpp"
#include "transfer/load_window.hpp"
#include "transfer/write_through_messages.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <cassert>
#include <deque>
#include <memory>

namespace terrace::actors {

namespace {

using step = load_window::step;

load_window::tiers_below below_of(const trust_group& group) {
  const auto& tiers = group.tiers();
  // What a device's tier has lost is looked for, and not found.
  auto reads = [](const tier_handle& tier) { return tier.reads_below() || tier.device; };
  return {.any = tiers.size() > 1, .reads = std::any_of(tiers.begin(), tiers.end(), reads)};
}

// ---- from below ----

/// The objects of the window that the tiers below have, held: by its lease, or from now on.
task<result<tier_holds>> window_below(load_pointer self, const load_job& job, load_window& window) {
  if (auto leased = window.leased_below()) {
    std::erase_if(*leased, [&job](const tier_hold& one) {
      const tier_handle* tier = job.group->tier(one.tier);
      return tier->device && !tier->reads(); // it is lost
    });
    co_return std::move(*leased);
  }
  batch_ptr objects = window.objects();
  auto below = co_await hold_below(self, *job.group, std::move(objects), job.note_access);
  co_return below;
}

/// Reads objects of the window that host memory lacks from the tiers below, in one round: the tiers hold what
/// they have, space for exactly that is acquired in host memory, and objects that were read, are valid and
/// are still published are published there, or passed through.
task<result<step>> bring_from_below(load_pointer self, const load_job& job, load_window& window) {
  auto below = co_await window_below(self, job, window);
  if (!below)
    co_return tl::unexpected(below.error());
  passage pass(window.reading(std::move(*below)));
  auto wanted = window.space(pass);
  if (!wanted)
    co_return tl::unexpected(wanted.error());
  pass.ask_for(std::move(*wanted));
  pass.on_arrival([&window, &pass] { return window.publishes(pass); });
  const tier_handle& host = job.group->tiers().front();
  auto failure = co_await bring(self, pass, *job.group, host);
  if (pass.refused().code != errc::ok)
    window.refused_space(pass.refused());
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  window.add_read(pass);
  co_return window.after_reading(pass.others_write());
}

// ---- a window ----

/// Runs until everything available of the window is in host memory, held or reserved.
task<error> bring_window(load_pointer self, const load_job& job, load_window& window) {
  while (true) {
    if (auto failure = why_ended(job.context, "load"); failure.code != errc::ok)
      co_return failure;
    const auto below = below_of(*job.group);
    result<step> next = step::read_below;
    if (!window.begin_below(*job.group->tiers().front().index, below)) {
      auto present = window.present();
      auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(present), "host tier");
      if (auto failure = failure_of(acquired); failure.code != errc::ok)
        co_return failure;
      next = window.add_present(std::move(*acquired), below);
    }
    if (next && *next == step::read_below) {
      next = co_await bring_from_below(self, job, window);
    }
    if (!next)
      co_return next.error();
    if (*next == step::ready)
      co_return error{};
    if (!window.release_and_wait())
      co_return window.gave_up();
    await_request written{window.objects(), job.context};
    auto finished = co_await ask<await_answer>(self, job.group->host, std::move(written), "host tier");
    if (auto failure = failure_of(finished); failure.code != errc::ok)
      co_return failure;
  }
}

void tell_below(load_pointer self, const load_job& job, const tier_handle& tier,
                write_through_notice notice) {
  for (auto& part : parts_of(std::move(notice), job.objects_per_chunk, job.group->window_bytes))
    self->send(tier.write_through, std::move(part));
}

/// Objects served from host memory may be missing in tiers below.
void offer_again(load_pointer self, const load_job& job, const load_window& window) {
  hold_ptr held = window.from_host();
  if (!held)
    return;
  for (const tier_handle& tier : job.group->tiers())
    if (tier.offers_again && tier.offers_again->load(std::memory_order_relaxed) && tier.writes())
      tell_below(self, job, tier, write_through_notice{job.space, window.objects(), held, {}});
}

/// A load into memory of a device is the second use of what host memory had: the device's tier gets it as well.
void promote(load_pointer self, const load_job& job, const load_window& window) {
  const tier_handle* tier = job.group->on_device();
  if (!tier || !tier->device->serves(job.target.device))
    return;
  if (hold_ptr held = window.from_host())
    tell_below(self, job, *tier, write_through_notice{job.space, window.objects(), held, {}});
}

void deliver(load_pointer self, const load_job& job, load_window& window) {
  auto by_tier = window.deliver();
  for (const tier_handle& tier : job.group->tiers())
    if (uint64_t bytes = by_tier[static_cast<size_t>(tier.kind)]; bytes != 0)
      tier.probe->read(bytes);
  offer_again(self, job, window);
  promote(self, job, window);
}

/// A window that is on its way into host memory, or there.
struct coming_window {
  load_window window;
  bool again; ///< it found no memory before
  error failure;
  task_event brought;
  task<> progress; ///< last: it refers to the others
};

using coming_windows = std::deque<std::unique_ptr<coming_window>>;

task<> bring_coming(load_pointer self, const load_job& job, coming_window& coming) {
  auto failure = co_await bring_window(self, job, coming.window);
  coming.failure = std::move(failure);
  coming.brought.set(); // `coming` may be gone
}

std::unique_ptr<coming_window> begin_window(load_pointer self, const load_job& job, load_window window,
                                            bool again) {
  std::unique_ptr<coming_window> made(new coming_window{std::move(window), again, {}, {}, {}});
  made->progress = bring_coming(self, job, *made);
  made->progress.start();
  return made;
}

/// Those behind the first are read meanwhile, if a lease says that they are there.
void begin_windows(load_pointer self, const load_job& job, load_plan& plan, coming_windows& coming) {
  bool small = plan.of_lease() && below_of(*job.group).reads && !plan.passes();
  const uint64_t most = job.target.device ? plan.device_window_bytes(job.group->device_window_bytes.load())
                                          : job.group->window_bytes.load();
  if (small && coming.empty() && plan.leased_in_host(plan.next_window(most)))
    small = false; // nothing of it is read from below
  bool ahead = small && plan.reads_ahead();
  uint64_t bytes = small ? job.group->window_bytes / load_plan::windows_max : most;
  size_t next = coming.empty() ? plan.begin : coming.back()->window.end();
  while (coming.empty() || (ahead && coming.size() < load_plan::windows_max && next < job.objects->size())) {
    load_window window(plan, bytes, next);
    next = window.end();
    if (ahead && (!coming.empty() || next < job.objects->size()))
      window.wait_for_nothing();
    coming.push_back(begin_window(self, job, std::move(window), false));
  }
  assert(coming.size() <= load_plan::windows_max);
}

/// The first has found no memory, which those behind it may hold. It tries once more, because those before it have
/// given theirs back since; then it waits, and the others begin anew.
void make_way(load_pointer self, const load_job& job, load_plan& plan, coming_windows& coming) {
  if (coming.front()->again || coming.size() == 1) {
    plan.alone = true;
    coming.clear();
    return;
  }
  load_window window(plan, job.group->window_bytes / load_plan::windows_max, coming.front()->window.begin());
  window.wait_for_nothing();
  coming.front() = begin_window(self, job, std::move(window), true);
}

// ---- pool by pool ----

/// Holds the whole chain in host memory. False: it is not all there.
task<result<bool>> hold_all(load_pointer self, const load_job& job, load_plan& plan,
                            std::deque<load_window>& windows) {
  for (size_t next = 0; next < job.objects->size(); next = windows.back().end()) {
    load_window& window = windows.emplace_back(plan, job.group->window_bytes, next);
    auto present = window.present();
    auto acquired = co_await ask<acquire_answer>(self, job.group->host, std::move(present), "host tier");
    if (auto failure = failure_of(acquired); failure.code != errc::ok)
      co_return tl::unexpected(failure);
    auto held = window.add_present(std::move(*acquired), {});
    if (!held)
      co_return tl::unexpected(held.error());
    if (*held != step::ready || !window.whole())
      co_return false;
  }
  co_return true;
}

/// False: it has to be loaded chunk by chunk.
task<result<bool>> load_by_pool(load_pointer self, const load_job& job, load_plan& plan) {
  std::deque<load_window> windows;
  auto all = co_await hold_all(self, job, plan, windows);
  if (!all)
    co_return all;
  if (!*all)
    co_return false;
  for (size_t pool = 0; pool < job.objects_per_chunk; ++pool)
    for (load_window& window : windows) {
      auto copy = window.copy_pool(pool);
      auto copied = co_await copy_by(self, *job.group, std::move(copy));
      if (auto lost = failure_of(copied); lost.code != errc::ok)
        co_return tl::unexpected(lost);
    }
  for (load_window& window : windows)
    deliver(self, job, window);
  co_return true;
}

// ---- chunk by chunk ----

task<error> load_by_chunk(load_pointer self, const load_job& job, load_plan& plan) {
  coming_windows coming;
  bool on_device = job.target.device != nullptr, from_disk = may_load_from_disk(job);
  while (!plan.complete()) {
    if (on_device && coming.empty()) {
      auto copied = co_await load_on_device(self, job, plan, on_device);
      if (!copied)
        co_return copied.error();
      if (*copied)
        continue;
    }
    if (from_disk && coming.empty()) {
      auto read = co_await load_from_disk(self, job, plan, from_disk);
      if (!read)
        co_return read.error();
      if (*read)
        continue;
    }
    begin_windows(self, job, plan, coming);
    coming_window& first = *coming.front();
    task_event& brought = first.brought;
    co_await brought;
    load_window& window = first.window;
    if (first.failure.code == errc::no_space && !window.waits()) {
      make_way(self, job, plan, coming);
      continue;
    }
    auto next = window.after_rounds(first.failure);
    if (next == load_window::next::end)
      co_return first.failure;
    if (next == load_window::next::again) {
      coming.clear();
      continue;
    }
    if (window.copies()) {
      auto copy = window.copy();
      auto copied = co_await copy_by(self, *job.group, std::move(copy));
      if (auto lost = failure_of(copied); lost.code != errc::ok)
        co_return lost;
    }
    deliver(self, job, window);
    if (auto end = window.after_delivery())
      co_return *end;
    plan.alone = false;
    coming.pop_front();
    if (!coming.empty() && coming.front()->window.begin() != plan.begin)
      coming.clear();
  }
  co_return error{};
}

// ---- pool by pool, from below ----

void add(load_result& done, const load_result& part) {
  done.bytes += part.bytes;
  for (size_t tier = 0; tier < done.bytes_by_tier.size(); ++tier)
    done.bytes_by_tier[tier] += part.bytes_by_tier[tier];
}

/// Where a chunk is lost, the pools that follow are loaded up to it.
task<error> load_by_layer(load_pointer self, const load_job& job, load_result& done) {
  size_t pool = 0, chunks = job.objects->size() / job.objects_per_chunk;
  while (pool < job.objects_per_chunk && chunks != 0) {
    load_job part{in_layer_order(job, pool, chunks), job.group};
    load_result got;
    load_plan plan{part, *job.group->memory, *job.group->leases, got};
    auto failure = co_await load_by_chunk(self, part, plan);
    add(done, got);
    if (failure.code != errc::ok)
      co_return failure;
    if (got.chunks == part.objects->size())
      break;
    pool += got.chunks / chunks + 1;
    chunks = got.chunks % chunks;
    done.missing = got.missing;
    done.damaged = got.damaged;
  }
  done.chunks = chunks;
  co_return error{};
}

task<error> load_all(load_pointer self, const load_job& job, load_result& done) {
  load_plan plan{job, *job.group->memory, *job.group->leases, done};
  if (job.by_pool()) {
    auto loaded = co_await load_by_pool(self, job, plan);
    if (!loaded)
      co_return loaded.error();
    if (*loaded)
      co_return error{};
  }
  if (job.by_layer()) {
    auto ended = co_await load_by_layer(self, job, done);
    co_return ended;
  }
  auto failure = co_await load_by_chunk(self, job, plan);
  co_return failure;
}

caf::behavior load_behavior(load_pointer self) { return transfer_behavior(self, load_all); }

} // namespace

caf::actor spawn_load(caf::actor_system& system) { return system.spawn(load_behavior); }

} // namespace terrace::actors
