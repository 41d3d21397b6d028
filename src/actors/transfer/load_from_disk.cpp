#include "actors/transfer/load_window.hpp"

#include <algorithm>
#include <cerrno>

namespace terrace::actors {

/// Takes what the host tier gave.
void keep(load_window& window, const acquire_answer& acquired) {
  window.places.assign(acquired.states.size(), {});
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::held)
      window.places[i] = acquired.places[i];
  window.holds = {acquired.held};
}

/// What the client is told where nothing may wait for what leases and those who read them hold.
error no_room(const load_job& job, const load_course& course, uint64_t bytes) {
  return {errc::no_space, "leases and those who read them hold " + std::to_string(course.others_hold) +
                              " of " + std::to_string(job.group->memory->size()) +
                              " bytes of host memory, and " + std::to_string(bytes) +
                              " more would leave no room to others: load into a region, or release some"};
}

bool may_stay(const load_job& job, const load_window& window, uint64_t held_bytes) {
  if (job.runs || held_bytes <= held_bytes_max(job))
    return true;
  for (size_t i = 0; i < window.size(); ++i) // what the lease holds there anyway takes nothing from others
    if (!job.host_held || !job.host_held->places()[window.begin + i].present())
      return false;
  return true;
}

namespace {

/// A chain longer than what can be had of host memory cannot stay there: half of that stays, and the rest streams past
/// instead of driving everything else out. What leases and other transfers hold cannot be had.
bool passes(const load_job& job, const load_course& course) {
  uint64_t size = job.group->memory->size();
  uint64_t room = size - std::min(size, course.others_hold);
  uint64_t bytes = 0;
  for (uint64_t each : job.objects->payload_bytes)
    bytes += physical_bytes_for(each);
  return job.runs && bytes > room && course.promoted >= room / 2;
}

/// What is read from disk for a window, and from where.
struct disk_reading {
  hold_ptr disk_held;          ///< parallel to the window's objects
  acquire_answer acquired;     ///< the space in host memory
  std::vector<size_t> objects; ///< of the window
};

/// The part of a lease's disk hold that belongs to the window; it shares the lease's ownership.
hold_ptr window_of(const hold_ptr& held, size_t begin, size_t end) {
  auto places = std::vector<object_place>(held->places().begin() + static_cast<ptrdiff_t>(begin),
                                          held->places().begin() + static_cast<ptrdiff_t>(end));
  return hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)), [held](object_hold* part) { delete part; });
}

/// What the disk has of the window; held.
task<result<hold_ptr>> hold_on_disk(load_pointer self, const load_job& job, const load_window& window) {
  if (job.disk_held)
    co_return window_of(job.disk_held, window.begin, window.end);
  probe_request question{window.objects, true, job.note_access};
  const tier_actor& tier = job.group->disk()->tier;
  auto found = co_await ask<probe_answer>(self, tier, std::move(question), "disk tier");
  if (!found)
    co_return tl::unexpected(found.error());
  if (!found->held) // nothing on disk: what host memory has is all there is
    co_return hold_ptr(new object_hold(release_sink_ptr{}, std::vector<object_place>(window.size())));
  co_return found->held;
}

/// Space for exactly what the disk holds and host memory lacks. Nothing when there is no room for it and nobody may wait.
task<result<acquire_answer>> acquire_space(load_pointer self, const load_job& job, load_course& course,
                                           const load_window& window, const object_hold& disk_held,
                                           bool delivered_some) {
  acquire_request request;
  request.objects = window.objects;
  request.note_access = false;
  request.context = job.context;
  request.may_fill.resize(window.size());
  uint64_t wanted = 0;
  for (size_t i = 0; i < request.may_fill.size(); ++i) {
    const object_place& place = disk_held.places()[i];
    request.may_fill[i] = place.present();
    if (place.present() && !window.places[i].present())
      wanted += physical_bytes_for(place.payload_bytes);
  }
  if (!job.runs) {
    uint64_t size = job.group->memory->size();
    request.may_wait = !delivered_some;                  // who waits holds nothing
    if (course.others_hold + wanted > size - size / 4) { // the rest is for transfers, which end
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

disk_request read_of(const load_job& job, const disk_reading& reading) {
  disk_request request;
  request.direction = disk_direction::read;
  request.context = job.context;
  request.owners = {reading.acquired.reserved, reading.disk_held};
  for (size_t i : reading.objects) {
    const object_place& place = reading.disk_held->places()[i];
    request.operations.push_back({place.offset, job.group->memory->at(reading.acquired.places[i].offset),
                                  physical_bytes_for(place.payload_bytes)});
  }
  return request;
}

/// Takes out of `reading` what the disk could not read.
void drop_unread(load_pointer self, const load_job& job, load_window& window, disk_reading& reading,
                 const disks_answer& read) {
  discard_notice unreadable;
  detach_notice stalled;
  std::vector<size_t> good;
  for (size_t n = 0; n < reading.objects.size(); ++n) {
    size_t i = reading.objects[n];
    if (read.failed[n] == 0) {
      good.push_back(i);
      continue;
    }
    window.lost[i] = true;
    if (!read.away[n])
      unreadable.ids.push_back(reading.disk_held->places()[i].id);
    if (read.failed[n] == ETIMEDOUT)
      stalled.ids.push_back(reading.acquired.places[i].id);
  }
  reading.objects = std::move(good);
  if (!unreadable.ids.empty())
    self->send(job.group->disk()->tier, std::move(unreadable));
  if (!stalled.ids.empty()) // nobody should wait for the kernel to give their memory back
    self->send(job.group->host, std::move(stalled));
}

check_request check_of(const load_job& job, const load_window& window, const disk_reading& reading) {
  check_request request;
  request.in = job.in;
  request.volume = job.group->disk()->volume;
  request.owners = {reading.acquired.reserved, reading.disk_held};
  for (size_t i : reading.objects) {
    sealed_object object;
    object.key = window.objects->keys[i];
    object.generation = reading.disk_held->places()[i].generation;
    object.begin = job.group->memory->at(reading.acquired.places[i].offset);
    object.payload_bytes = reading.acquired.places[i].payload_bytes;
    object.physical_bytes = physical_bytes_for(object.payload_bytes);
    request.objects.push_back(object);
  }
  return request;
}

/// Takes out of `reading` what is damaged, which is dropped from the disk tier.
void drop_damaged(load_pointer self, const load_job& job, load_window& window, disk_reading& reading,
                  const std::vector<bool>& good) {
  discard_notice damaged;
  std::vector<size_t> sound;
  for (size_t n = 0; n < reading.objects.size(); ++n) {
    size_t i = reading.objects[n];
    if (good[n]) {
      sound.push_back(i);
      continue;
    }
    window.lost[i] = true;
    damaged.ids.push_back(reading.disk_held->places()[i].id);
  }
  reading.objects = std::move(sound);
  if (!damaged.ids.empty())
    self->send(job.group->disk()->tier, std::move(damaged));
}

confirm_request confirm_of(const disk_reading& reading) {
  confirm_request request;
  for (size_t i : reading.objects)
    request.ids.push_back(reading.disk_held->places()[i].id);
  return request;
}

/// What was cleared from the disk tier meanwhile is not brought back.
void drop_cleared(disk_reading& reading, const std::vector<bool>& present) {
  size_t kept = 0;
  for (size_t n = 0; n < reading.objects.size(); ++n)
    if (present[n])
      reading.objects[kept++] = reading.objects[n];
  reading.objects.resize(kept);
}

/// Reads the reserved objects into their place in host memory and keeps in `reading` what arrived and counts. False: the
/// disk is out of service, and nothing was read.
task<result<bool>> read_reserved(load_pointer self, const load_job& job, load_window& window,
                                 disk_reading& reading) {
  const disk_parts& disk = *job.group->disk();
  auto request = read_of(job, reading);
  auto read = co_await ask<disks_answer>(self, disk.set, std::move(request), "disk");
  if (auto failure = ended(job.context, "load"); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  if (auto failure = failure_of(read); failure.code != errc::ok)
    co_return tl::unexpected(failure);
  const auto& failed = read->failed;
  if (std::count(failed.begin(), failed.end(), EBUSY) == static_cast<ptrdiff_t>(failed.size()))
    co_return false;
  drop_unread(self, job, window, reading, *read);

  auto check = check_of(job, window, reading);
  const copier_actor& copier = job.group->copiers->next();
  auto checked = co_await ask<check_answer>(self, copier, std::move(check), "copier");
  if (!checked)
    co_return tl::unexpected(checked.error());
  drop_damaged(self, job, window, reading, checked->good);

  auto confirm = confirm_of(reading);
  auto confirmed = co_await ask<confirm_answer>(self, disk.tier, std::move(confirm), "disk tier");
  if (!confirmed)
    co_return tl::unexpected(confirmed.error());
  drop_cleared(reading, confirmed->present);
  co_return true;
}

/// What was read and found good becomes visible and is held, or passes. `others`: the window waits for others next, and
/// must not keep what nobody can see.
task<error> publish_read(load_pointer self, const load_job& job, load_course& course, load_window& window,
                         const disk_reading& reading, bool others) {
  publish_request request;
  request.hold = true;
  request.in = job.in;
  if (job.context)
    request.inference = job.context->inference;
  for (size_t i : reading.objects) {
    request.places.push_back(reading.acquired.places[i]);
    window.places[i] = reading.acquired.places[i];
    window.from_disk[i] = true;
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

task<result<bool>> bring_from_disk(load_pointer self, const load_job& job, load_course& course,
                                   load_window& window, bool delivered_some) {
  window.holds.clear(); // who waits holds nothing
  disk_reading reading;
  auto disk_held = co_await hold_on_disk(self, job, window);
  if (!disk_held)
    co_return tl::unexpected(disk_held.error());
  reading.disk_held = *disk_held;
  auto acquired = co_await acquire_space(self, job, course, window, *reading.disk_held, delivered_some);
  if (!acquired)
    co_return tl::unexpected(acquired.error());
  reading.acquired = std::move(*acquired);
  keep(window, reading.acquired);
  for (size_t i = 0; i < reading.acquired.states.size(); ++i) {
    if (reading.acquired.states[i] == acquired_state::reserved)
      reading.objects.push_back(i);
    else if (reading.acquired.states[i] == acquired_state::absent && reading.disk_held->places()[i].present())
      window.first_left = std::min(window.first_left, i);
  }
  bool others = any(reading.acquired, acquired_state::pending);
  if (reading.objects.empty())
    co_return others;
  auto read = co_await read_reserved(self, job, window, reading);
  if (!read)
    co_return tl::unexpected(read.error());
  if (!*read) { // what host memory has is all there is
    window.lost.assign(window.size(), true);
    co_return false;
  }
  auto failure = co_await publish_read(self, job, course, window, reading, others);
  if (failure.code != errc::ok)
    co_return tl::unexpected(failure);
  co_return others;
}

} // namespace terrace::actors
