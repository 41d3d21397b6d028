#include "actors/gpu/daemon/device_slices.hpp"
#include "actors/gpu/daemon/device_state.hpp"

#include "runtime/ask.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <cassert>

namespace terrace::actors {

namespace {

using gpu::process_verb;

error ended_copy(const context_ptr& context) { return why_ended(context, "copy"); }

bool is_load(const device_copy& copy) { return copy.request.direction == copy_direction::out_of_arena; }

void count_load(device_pointer self, const device_copy& copy) {
  self->state.with.probe->loaded(copy.bytes);
  self->state.with.probe->signalled(copy.request.generations.count);
}

/// Answers a copy whose last slice has ended. A copier announces what has arrived, because a page of the
/// client may have to be brought in for that.
void finish_copy(device_pointer self, const device_copy_ptr& copy) {
  if (copy->in_flight != 0 || (!copy->cut && copy->failure.code == errc::ok))
    return;
  auto& state = self->state;
  copy_answer done{copy->failure, copy->bytes, {}};
  if (done.failure.code == errc::ok && is_load(*copy))
    count_load(self, *copy);
  else if (done.failure.code == errc::ok)
    state.with.probe->stored(copy->bytes);
  if (done.failure.code != errc::ok || !copy->request.arrived.counters) {
    copy->reply.deliver(std::move(done));
    return;
  }
  copy_request announcement;
  announcement.direction = copy->request.direction;
  announcement.arrived = copy->request.arrived;
  announcement.context = copy->request.context;
  self->request(state.with.copiers->next(), caf::infinite, std::move(announcement))
      .then([copy, done](const copy_answer&) { copy->reply.deliver(done); },
            [copy, done](const caf::error&) { copy->reply.deliver(done); });
}

/// Returns the arena's side of a slice: contiguous in the slot; in the arena where its spans are.
copy_request arena_side(const slice_work& work) {
  const device_copy& of = *work.copy;
  copy_request request;
  request.direction = of.request.direction;
  uint64_t slot_bytes = work.staging->slot_bytes;
  request.outside = {work.staging->slot(work.slot), -1, slot_bytes, work.staging};
  std::vector<region_run> runs;
  std::vector<uint64_t> sizes;
  for (const auto& span : work.slice.spans) {
    runs.push_back({span.at, span.bytes, 0, 1});
    request.objects.push_back({span.inside, sizes.size()});
    sizes.push_back(span.bytes);
  }
  // A load fills the slot: from the copier's view it copies out of the arena.
  request.runs = std::make_shared<const scatter_gather>(*scatter_gather::make(runs, {}, sizes, slot_bytes));
  request.context = of.request.context;
  request.owners = of.request.owners;
  return request;
}

/// Adds the generations to the last slice that the device is given: its stream writes them behind the copies
/// of all slices, without a round trip.
void add_signals(const device_copy& copy, gpu::process_message& message) {
  const device_generations& wanted = copy.request.generations;
  if (!wanted.page || copy.unsent != 0 || !copy.slices.complete() || copy.failure.code != errc::ok)
    return;
  message.page = region_of(*wanted.page).id();
  message.signal = {wanted.slot, wanted.value};
  message.signals = wanted.count;
}

/// Sends the device's side of a slice.
void ask_device(device_pointer self, slice_work& work) {
  const auto& region = region_of(*work.copy->request.outside.device);
  process_packet packet;
  packet.message.verb = is_load(*work.copy) ? process_verb::load : process_verb::store;
  packet.message.region = region.id();
  packet.message.copies = work.slice.copies;
  if (const auto& arena = work.copy->request.arena)
    packet.message.arena = region_of(*arena).id();
  if (work.slice.pinned)
    packet.message.arena = work.slice.pinned->region;
  uint64_t begin = packet.message.arena != 0 ? 0 : work.slot * work.staging->slot_bytes;
  for (gpu::strided_copy& copy : packet.message.copies)
    copy.object_offset += begin;
  --work.copy->unsent;
  add_signals(*work.copy, packet.message);
  ask_process(self, std::move(packet), [&work](const error& failure, const process_packet&) {
    work.failure = failure;
    work.answered.set(); // `work` may have been destroyed
  });
}

bool process_is_there(device_pointer self, const slice_work& work) {
  return self->state.now == device_state::phase::ready && self->state.staging == work.staging;
}

task<error> through_copier(device_pointer self, slice_work& work) {
  auto request = arena_side(work);
  const copier_actor& copier = self->state.with.copiers->next();
  auto copied = co_await ask<copy_answer>(self, copier, std::move(request), "copier");
  if (!copied)
    co_return copied.error();
  co_return copied->failure;
}

task<error> through_device(device_pointer self, slice_work& work) {
  if (!process_is_there(self, work))
    co_return no_such_process(self);
  ask_device(self, work);
  task_event& answered = work.answered;
  co_await answered;
  co_return work.failure;
}

task<error> load_slice(device_pointer self, slice_work& work) {
  // The slot counts it, but no bytes pass through it.
  if (work.copy->request.arena || work.slice.pinned || work.slice.copies.empty()) {
    auto direct = co_await through_device(self, work);
    co_return direct;
  }
  auto filled = co_await through_copier(self, work);
  if (filled.code != errc::ok)
    co_return filled;
  auto copied = co_await through_device(self, work);
  co_return copied;
}

task<error> store_slice(device_pointer self, slice_work& work) {
  auto copied = co_await through_device(self, work);
  if (copied.code != errc::ok)
    co_return copied;
  auto published = co_await through_copier(self, work);
  co_return published;
}

void count_slice(device_pointer self, const slice_work& work) {
  work.copy->bytes += work.slice.bytes;
  auto& probe = *self->state.with.probe;
  if (work.slice.pinned)
    probe.read_arena(work.slice.bytes);
  else if (const auto& arena = work.copy->request.arena; arena && region_of(*arena).peer())
    probe.read_peer(work.slice.bytes);
  else if (!arena)
    probe.passed_staging(work.slice.bytes);
}

task<> move_slice(device_pointer self, std::list<slice_work>::iterator at) {
  slice_work& work = *at;
  auto moving = is_load(*work.copy) ? load_slice(self, work) : store_slice(self, work);
  auto failure = co_await std::move(moving);
  auto& state = self->state;
  auto copy = work.copy;
  if (failure.code == errc::ok)
    count_slice(self, work);
  else if (copy->failure.code == errc::ok)
    copy->failure = failure;
  if (work.arena_use != 0)
    state.arenas.end_use(work.arena_use);
  --copy->in_flight;
  if (process_is_there(self, work))
    state.free_slots.push_back(work.slot);
  finish_copy(self, copy);
  start_slices(self);
  pin_more(self);         // or forgets what this has used
  state.slices.erase(at); // destroys this frame once it has suspended
}

} // namespace

void start_slices(device_pointer self) {
  auto& state = self->state;
  while (!state.free_slots.empty() && !state.line.empty()) {
    device_copy_ptr copy = state.line.pop();
    auto why = ended_copy(copy->request.context);
    if (why.code != errc::ok && copy->failure.code == errc::ok)
      copy->failure = why;
    bool direct = is_load(*copy) && !copy->request.arena;
    // Bytes that do not cross a bus are copied many times as fast.
    const auto& arena = copy->request.arena;
    const bool inside = is_load(*copy) && arena && !region_of(*arena).peer();
    const uint64_t bytes_max = state.staging->slot_bytes * (inside ? device_staging::slots : 1);
    auto slice = copy->failure.code == errc::ok
                     ? copy->slices.next(bytes_max, direct && !state.arenas.empty() ? &state.arenas : nullptr)
                     : std::nullopt;
    if (!slice && !copy->begun && copy->failure.code == errc::ok && copy->request.generations.page)
      slice.emplace(); // a slice without bytes, for the generations only
    if (!slice) {
      copy->cut = true;
      finish_copy(self, copy);
      continue;
    }
    copy->begun = true;
    ++copy->in_flight;
    ++copy->unsent;
    state.line.push_front(flow_of(copy->request.context), copy, bytes_max);
    auto work = state.slices.emplace(state.slices.end());
    work->copy = std::move(copy);
    work->slice = std::move(*slice);
    if (work->slice.pinned)
      work->arena_use = state.arenas.use(work->slice.pinned->segment, work->copy->request.owners);
    work->slot = state.free_slots.back();
    work->staging = state.staging;
    state.free_slots.pop_back();
    work->progress = move_slice(self, work);
    work->progress.start();
  }
  assert(state.slices.size() <= 2 * device_staging::slots); // slices of a lost process finish with a copier
}

void fail_line(device_pointer self, const error& why) {
  auto& line = self->state.line;
  while (!line.empty()) {
    device_copy_ptr copy = line.drop();
    if (copy->failure.code == errc::ok)
      copy->failure = why;
    finish_copy(self, copy);
  }
}

caf::result<copy_answer> on_copy(device_pointer self, copy_request& request) {
  auto& state = self->state;
  auto reply = make_answer<copy_answer>(self);
  auto promise = reply.promise();
  const auto& region = region_of(*request.outside.device);
  // Each device numbers its processes and regions separately.
  auto of_same_process = [&region](const device_memory_ptr& other) {
    return !other ||
           (region_of(*other).device() == region.device() && region_of(*other).process() == region.process());
  };
  bool same = of_same_process(request.arena) && of_same_process(request.generations.page);
  if (state.now != device_state::phase::ready || region.process() != state.process || !same) {
    reply.fail(no_such_process(self));
    return promise;
  }
  gpu::device_slices slices(request);
  auto copy = std::make_shared<device_copy>(
      device_copy{std::move(request), std::move(slices), std::move(reply), 0, 0, 0, false, false, {}});
  state.line.push(flow_of(copy->request.context), copy, state.staging->slot_bytes);
  start_slices(self);
  return promise;
}

} // namespace terrace::actors
