// Objects that the process of the device reads from files itself, in batches. Each batch goes through a slot
// of the device's memory, where it is verified before it is copied into the region.
#include "actors/gpu/daemon/device_state.hpp"

#include "gpu/process/direct_record.hpp"
#include "index/object_header.hpp"
#include "runtime/ask.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace terrace::actors {

namespace {

using gpu::process_verb;
using phase = device_reads::phase;

constexpr uint64_t read_slots = gpu::disk_reader::slots;

bool process_is_there(device_pointer self, const disk_work& work) {
  auto& state = self->state;
  return state.now == device_state::phase::ready && work.process == state.process;
}

void finish_read(const direct_read_ptr& read) {
  if (read->in_flight != 0 || (!read->stopped && read->begun != read->there.size()) ||
      std::exchange(read->answered, true))
    return;
  direct_read_answer done;
  done.failure = read->failure;
  done.objects =
      static_cast<size_t>(std::find(read->there.begin(), read->there.end(), false) - read->there.begin());
  read->reply.deliver(std::move(done));
  read->request = {}; // released even if it is still queued
}

void ask_read(device_pointer self, disk_work& work) {
  process_packet packet;
  packet.message.verb = process_verb::read;
  packet.message.offset = work.slot;
  uint64_t at = 0;
  for (size_t i = work.begin; i < work.end; ++i) {
    const object_in_file& object = work.read->request.files[i];
    packet.message.extents.push_back(
        {object.file->number, object.file_offset, work.read->extent_bytes[i], at, object.expected});
    at += work.read->extent_bytes[i];
  }
  ask_process(
      self, std::move(packet),
      [&work](const error& failure, const process_packet& answer) {
        if (work.late) {
          work.over.set(); // `work` may have been destroyed
          return;
        }
        work.failure = failure;
        work.good = failure.code == errc::ok ? answer.message.bytes : 0;
        work.unread = failure.code == errc::ok ? answer.message.offset : 0;
        work.why = answer.message.text;
        work.answered.set(); // `work` may have been destroyed
      },
      patience::until_deadline,
      [self, &work] {
        work.late = true;
        self->state.with.probe->was_late_with_disk();
        work.why = "it was not read within " + std::to_string(self->state.with.deadline.count()) +
                   " ms (gpu.deadline)";
        work.answered.set();
      });
}

/// Copies the first objects of the batch out of the slot, up to one that is absent. Those behind it are of no
/// use.
copy_request copy_of(device_pointer self, const disk_work& work, size_t objects) {
  const copy_request& wanted = work.read->request.copy;
  copy_request copy;
  copy.direction = copy_direction::out_of_arena;
  copy.outside = wanted.outside;
  copy.runs = wanted.runs;
  copy.arena = self->state.reads.slots;
  copy.context = wanted.context;
  copy.owners = wanted.owners;
  uint64_t at = work.slot * (self->state.with.direct_bytes / read_slots);
  for (size_t i = work.begin; i < work.begin + objects; ++i) {
    copy.objects.push_back({nullptr, wanted.objects[i].number, at + object_header_bytes});
    at += work.read->extent_bytes[i];
  }
  return copy;
}

task<error> through_slot(device_pointer self, disk_work& work) {
  ask_read(self, work);
  task_event& answered = work.answered;
  co_await answered;
  if (work.failure.code != errc::ok || work.late)
    co_return work.failure;
  const auto objects =
      std::min<size_t>(static_cast<size_t>(std::countr_one(work.good)), work.end - work.begin);
  if (objects == 0)
    co_return error{};
  if (!process_is_there(self, work))
    co_return no_such_process(self);
  auto copy = copy_of(self, work, objects);
  auto device = caf::actor_cast<device_actor>(self);
  auto copied = co_await ask<copy_answer>(self, device, std::move(copy), "device");
  if (!copied)
    co_return copied.error();
  if (copied->failure.code == errc::ok) {
    self->state.with.probe->read_disk(copied->bytes);
    std::fill_n(work.read->there.begin() + static_cast<ptrdiff_t>(work.begin), objects, true);
  }
  co_return copied->failure;
}

/// Counts failures of this way: what the library could not read, or not in time, and batches of which the
/// process knows nothing. Damaged objects are left to the read through host memory.
void count_failure(device_pointer self, const disk_work& work) {
  auto& state = self->state;
  auto& reads = state.reads;
  const std::string& why = work.why;
  state.with.probe->could_not_read_disk();
  const bool counts = work.unread != 0 || work.late || work.failure.code != errc::ok;
  const size_t failures = counts ? state.with.record->failed(work.process) : 0;
  if (failures != 0 && !std::exchange(reads.told, true))
    state.with.warn(subject(self) +
                    " could not read an object itself; it is read through host memory: " + why);
  if (failures == gpu::direct_record::failures_max && reads.now == phase::ready)
    refuse_reads(self, "it fails too often: " + why);
}

void start_reads(device_pointer self);

/// The batch has arrived, or nobody waits for it any more. It no longer keeps anything of its read.
void leave_read(device_pointer self, disk_work& work, const error& failure) {
  auto& state = self->state;
  direct_read_ptr read = std::move(work.read);
  if (failure.code != errc::ok && read->failure.code == errc::ok)
    read->failure = failure;
  if (failure.code != errc::ok || !work.why.empty())
    read->stopped = true;
  if (!work.why.empty())
    count_failure(self, work);
  else if (failure.code == errc::ok)
    state.with.record->read(work.process);
  if (!work.late && process_is_there(self, work))
    state.reads.free_slots.push_back(work.slot);
  --read->in_flight;
  finish_read(read);
}

task<> read_batch(device_pointer self, std::list<disk_work>::iterator at) {
  disk_work& work = *at;
  auto& state = self->state;
  auto moving = through_slot(self, work);
  auto failure = co_await std::move(moving);
  leave_read(self, work, failure);
  if (work.late) {
    on_late_slots(self, state.reads.late + 1);
    task_event& over = work.over;
    co_await over;
    if (process_is_there(self, work))
      state.reads.free_slots.push_back(work.slot);
    on_late_slots(self, state.reads.late - 1);
  }
  start_reads(self);
  if (work.late)
    go_on(self);               // it may have been the last thing that kept the process
  state.reads.works.erase(at); // destroys this frame once it has suspended
}

void start_reads(device_pointer self) {
  auto& state = self->state;
  auto& reads = state.reads;
  while (!reads.free_slots.empty() && !reads.line.empty()) {
    direct_read_ptr read = reads.line.pop();
    if (!read->stopped && read->failure.code == errc::ok)
      read->failure = why_ended(read->request.copy.context, "read");
    read->stopped = read->stopped || read->failure.code != errc::ok;
    if (read->stopped || read->begun == read->there.size()) {
      read->stopped = true;
      finish_read(read);
      continue;
    }
    auto work = reads.works.emplace(reads.works.end());
    work->begin = read->begun;
    work->end = read->begun = gpu::disk_batch_end(read->extent_bytes, read->begun, read->batch_bytes);
    work->process = state.process;
    work->slot = reads.free_slots.back();
    reads.free_slots.pop_back();
    ++read->in_flight;
    if (read->begun != read->there.size())
      reads.line.push_front(flow_of(read->request.copy.context), read, read->batch_bytes);
    work->read = std::move(read);
    work->progress = read_batch(self, work);
    work->progress.start();
  }
}

} // namespace

void stop_line(device_pointer self, const error& why) {
  auto& line = self->state.reads.line;
  while (!line.empty()) {
    direct_read_ptr read = line.drop();
    if (read->failure.code == errc::ok)
      read->failure = why;
    read->stopped = true;
    finish_read(read);
  }
}

caf::result<direct_read_answer> on_direct_read(device_pointer self, direct_read_request& request) {
  auto& state = self->state;
  auto reply = make_answer<direct_read_answer>(self);
  auto promise = reply.promise();
  const auto& region = region_of(*request.copy.outside.device);
  error why;
  if (state.now != device_state::phase::ready || region.process() != state.process)
    why = no_such_process(self);
  else
    why = not_yet(self, request);
  if (why.code != errc::ok) {
    reply.deliver(direct_read_answer{why, 0});
    return promise;
  }
  auto read = std::make_shared<direct_read>(
      direct_read{std::move(request), std::move(reply), {}, 0, 0, {}, 0, false, {}});
  uint64_t bytes = 0;
  for (const object_in_file& object : read->request.files) {
    read->extent_bytes.push_back(physical_bytes_for(object.expected.payload_bytes));
    bytes += read->extent_bytes.back();
  }
  read->there.resize(read->extent_bytes.size());
  read->batch_bytes = gpu::disk_batch_bytes(bytes, state.with.direct_bytes / read_slots);
  state.reads.line.push(flow_of(read->request.copy.context), read, read->batch_bytes);
  start_reads(self);
  return promise;
}

} // namespace terrace::actors
