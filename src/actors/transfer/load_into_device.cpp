#include "actors/transfer/load_into_device.hpp"

#include "actors/transfer/transfer_steps.hpp"
#include "base/tier_properties.hpp"
#include "storage/disk/direct_source.hpp"
#include "transfer/direct_window.hpp"

#include <caf/event_based_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

/// Cuts the window to the first chunks that only the disk has, and that the device reads itself.
bool cut_to_disk(const load_job& job, direct_window& window, recent_keys& read_lately) {
  const uint64_t bytes_max = region_of(*job.target.device).direct_bytes_max();
  // What comes first most often decides: host memory has it, or is to have it now.
  return window.cut(first_allowed(window.size(), window.chunk(), [&](size_t most) {
    size_t objects = window.before_known(most, read_lately);
    for (const tier_handle& tier : job.group->tiers())
      if (!durable(tier.kind))
        objects = window.before_present(objects, *tier.index);
    return window.readable(objects, bytes_max);
  }));
}

/// What waits for the load is told by the device, behind its copies.
task<error> announce(load_pointer self, const load_job& job, const direct_window& window) {
  auto wanted = window.announcement();
  if (!wanted)
    co_return error{};
  auto request = std::move(*wanted);
  copying_actor device = region_of(*job.target.device).device();
  auto told = co_await ask<copy_answer>(self, device, std::move(request), "copier");
  co_return failure_of(told);
}

} // namespace

task<result<bool>> load_on_device(load_pointer self, const load_job& job, load_plan& plan, bool& tries) {
  const tier_handle* tier = job.group->on_device();
  if (!tier || !tries || !tier->device->reaches(job.target.device) || tier->index->empty())
    co_return false;
  device_window window(plan, job.group->device_window_bytes);
  if (window.add_held(window.leased())) {
    auto leased = window.confirmation();
    auto confirmed = co_await ask<confirm_answer>(self, tier->tier, std::move(leased), "GPU tier");
    if (!confirmed)
      co_return tl::unexpected(confirmed.error());
    if (!window.add_confirmed(confirmed->present)) {
      tries = false; // what was cleared is found out as everywhere
      co_return false;
    }
  } else { // a lease may hold less there than the tier has
    probe_request wanted{window.objects(), true, job.note_access};
    auto found = co_await ask<probe_answer>(self, tier->tier, std::move(wanted), "GPU tier");
    if (!found)
      co_return tl::unexpected(found.error());
    if (!window.add_held(found->held))
      co_return false;
  }
  auto request = window.request();
  auto copied = co_await ask<copy_answer>(self, tier->device->mover, std::move(request), "GPU tier");
  auto lost = failure_of(copied);
  if (lost.code == errc::not_found) {
    tries = false;
    co_return false;
  }
  if (lost.code != errc::ok)
    co_return tl::unexpected(lost);
  tier->probe->read(window.deliver());
  co_return true;
}

bool may_load_from_disk(const load_job& job) {
  if (!job.target.device || region_of(*job.target.device).direct_bytes_max() == 0)
    return false;
  const tier_handle* tier = job.group->disk();
  return tier && tier->direct && tier->direct->readable(region_of(*job.target.device).unread());
}

task<result<bool>> load_from_disk(load_pointer self, const load_job& job, load_plan& plan, bool& tries) {
  tries = tries && !plan.subject.order && may_load_from_disk(job);
  if (!tries)
    co_return false;
  const tier_handle* tier = job.group->disk();
  direct_source& source = *tier->direct;
  direct_window window(plan, job.group->device_window_bytes);
  if (!cut_to_disk(job, window, source.read_lately()))
    co_return false;
  const bool leased = window.add_held(window.leased());
  if (!leased) { // a lease may hold less there than the tier has
    probe_request wanted{.objects = window.objects(), .hold = true, .counts = false};
    auto found = co_await ask<probe_answer>(self, tier->tier, std::move(wanted), "disk tier");
    if (!found)
      co_return tl::unexpected(found.error());
    if (!window.add_held(found->held))
      co_return false;
  }
  auto wanted = window.request(job.space);
  const size_t count = wanted.places.size();
  metered_read metered(source.meter(), wanted.places);
  auto request = source.request(std::move(wanted));
  device_actor device = region_of(*job.target.device).device();
  auto read = co_await ask<direct_read_answer>(self, device, std::move(request), "device");
  metered.end(read && read->objects == count ? count : 0); // its time says little if one of them was late
  if (!read)
    co_return tl::unexpected(read.error());
  auto failure = why_ended(job.context, "load");
  if (failure.code == errc::ok && read->failure.code == errc::gone)
    failure = read->failure;
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  tries = window.add_read(read->objects);
  auto there = window.confirmation();
  if (there.ids.empty())
    co_return false;
  auto confirmed = co_await ask<confirm_answer>(self, tier->tier, std::move(there), "disk tier");
  if (!confirmed)
    co_return tl::unexpected(confirmed.error());
  tries = window.add_confirmed(confirmed->present) && tries;
  auto announced = co_await announce(self, job, window);
  if (announced.code != errc::ok)
    co_return tl::unexpected(announced);
  uint64_t bytes = window.deliver(source.read_lately());
  if (bytes == 0)
    co_return false;
  tier->probe->read(bytes);
  if (leased)
    co_return true;
  auto delivered =
      window.confirmation().ids; // the way through host memory counts and notes what it delivers itself
  tier->probe->hit(delivered.size());
  if (job.note_access)
    self->send(tier->tier, access_notice{std::move(delivered)});
  co_return true;
}

} // namespace terrace::actors
