#include "actors/transfer/load_into_device.hpp"

#include "actors/transfer/transfer_steps.hpp"
#include "transfer/device_window.hpp"
#include "transfer/direct_window.hpp"

#include <caf/event_based_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

/// Cuts the window to the first chunks that only the disk has, and that the device reads itself.
bool cut_to_disk(const load_job& job, direct_window& window) {
  size_t objects = window.readable(region_of(*job.target.device).direct_bytes_max());
  objects = std::min(objects, window.before_known(*job.group->read_directly));
  for (const tier_parts& tier : job.group->tiers())
    if (tier.kind != tier_kind::disk)
      objects = std::min(objects, tier.index->first_present(*window.objects()));
  return window.cut(objects);
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

task<result<bool>> load_on_device(load_pointer self, const load_job& job, load_course& course, bool& tries) {
  const tier_parts* tier = job.group->tier(tier_kind::gpu);
  if (!tier || !tries || !tier->device->reaches(job.target.device) || tier->index->empty())
    co_return false;
  device_window window(course, job.group->device_window_bytes);
  if (!window.take_held(window.leased())) { // a lease may hold less there than the tier has
    probe_request wanted{window.objects(), true, job.note_access};
    auto found = co_await ask<probe_answer>(self, tier->tier, std::move(wanted), "GPU tier");
    if (!found)
      co_return tl::unexpected(found.error());
    if (!window.take_held(found->held))
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

task<result<bool>> load_from_disk(load_pointer self, const load_job& job, load_course& course, bool& tries) {
  const tier_parts* tier = job.group->tier(tier_kind::disk);
  if (!tier || !tries || !tier->direct || !tier->reads() || course.of.order)
    co_return false;
  direct_window window(course, job.group->device_window_bytes);
  if (!cut_to_disk(job, window))
    co_return false;
  if (!window.take_held(window.leased())) { // a lease may hold less there than the tier has
    probe_request wanted{window.objects(), true, job.note_access};
    auto found = co_await ask<probe_answer>(self, tier->tier, std::move(wanted), "disk tier");
    if (!found)
      co_return tl::unexpected(found.error());
    if (!window.take_held(found->held))
      co_return false;
  }
  auto request = window.request(job.in);
  auto read = co_await ask<direct_read_answer>(self, tier->direct, std::move(request), "disk set");
  if (!read)
    co_return tl::unexpected(read.error());
  auto failure = why_ended(job.context, "load");
  if (failure.code == errc::ok && read->failure.code == errc::gone)
    failure = read->failure;
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  tries = window.take_read(read->objects);
  auto announced = co_await announce(self, job, window);
  if (announced.code != errc::ok)
    co_return tl::unexpected(announced);
  if (uint64_t bytes = window.deliver(*job.group->read_directly); bytes != 0)
    tier->probe->read(bytes);
  co_return read->objects != 0;
}

} // namespace terrace::actors
