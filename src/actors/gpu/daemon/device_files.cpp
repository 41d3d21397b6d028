// The files that the process of the device reads itself, and the library that reads them.
#include "actors/gpu/daemon/device_state.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace::actors {

namespace {

using gpu::process_verb;
using phase = device_reads::phase;

constexpr uint64_t slots = gpu::disk_reader::slots;

std::string lost_too_often(device_pointer self) {
  return std::to_string(self->state.with.record->losses()) +
         " of its processes were lost while cuFile was open in them";
}

/// Loads do not ask for a file that is not available.
void enter(device_reads& reads, device_reads::file& file, phase next) {
  file.now = next;
  auto what = file.file.lock();
  if (!what)
    return;
  if (next == phase::opening || next == phase::refused)
    reads.direct->unread.add(*what);
  else
    reads.direct->unread.remove(*what);
}

std::string all_late(device_pointer self) {
  return "none of the " + std::to_string(slots) + " reads under way was over within " +
         std::to_string(self->state.with.deadline.count()) + " ms (gpu.deadline)";
}

std::string shown(device_pointer self) {
  const auto& reads = self->state.reads;
  auto ready = [](const auto& file) { return file.second.now == phase::ready; };
  auto opening = [](const auto& file) { return file.second.now == phase::opening; };
  if (!reads.direct)
    return "off";
  if (reads.now == phase::unknown)
    return "not tried";
  if (reads.now == phase::refused)
    return "no: " + reads.refusal;
  if (reads.late == slots)
    return "no: " + all_late(self);
  if (!reads.refused_file.empty())
    return "not all: " + reads.refused_file;
  if (std::any_of(reads.files.begin(), reads.files.end(), opening))
    return "opening";
  return std::any_of(reads.files.begin(), reads.files.end(), ready) ? "yes" : "opening";
}

void show_reads(device_pointer self) { self->state.with.probe->reads_disks(shown(self)); }

/// Begins anew, as far as earlier failures of this way allow.
void begin_anew(device_pointer self) {
  auto& state = self->state;
  auto& reads = state.reads;
  const bool given_up = state.with.record->given_up();
  reads.now = given_up ? phase::refused : phase::unknown;
  reads.refusal = given_up ? lost_too_often(self) : std::string();
  if (reads.direct)
    reads.direct->possible = !given_up;
  show_reads(self);
}

void on_file_added(device_pointer self, uint64_t number, const std::string& path, const error& failure) {
  auto& state = self->state;
  if (failure.code == errc::gone)
    return;
  const bool added = failure.code == errc::ok;
  enter(state.reads, state.reads.files.at(number), added ? phase::ready : phase::refused);
  if (!added)
    state.reads.refused_file = path + " is read through host memory: " + failure.text;
  show_reads(self);
  state.with.log(subject(self) + (added ? " reads " + path + " itself" : ": " + state.reads.refused_file));
}

void add_file(device_pointer self, device_reads::file& file) {
  auto what = file.file.lock();
  if (!what)
    return; // its disk and the daemon are ending
  enter(self->state.reads, file, phase::opening);
  process_packet packet;
  packet.message.verb = process_verb::add_file;
  packet.message.region = what->number;
  packet.descriptor = std::shared_ptr<unique_fd>(what, &what->descriptor);
  ask_process(
      self, std::move(packet),
      [self, number = what->number, path = what->path](const error& failure, const process_packet&) {
        on_file_added(self, number, path, failure);
      },
      patience::endless);
}

device_reads::file& file_of(device_pointer self, const std::shared_ptr<named_file>& file) {
  return self->state.reads.files.try_emplace(file->number, device_reads::file{file}).first->second;
}

void on_opened(device_pointer self, uint64_t region, const error& failure) {
  auto& state = self->state;
  auto& reads = state.reads;
  if (failure.code == errc::gone || reads.now != phase::opening)
    return; // the process is lost
  if (failure.code != errc::ok) {
    reads.now = phase::refused;
    reads.refusal = failure.text;
    show_reads(self);
    state.with.log(subject(self) + " reads no disks itself (gpu.direct_bytes): " + failure.text);
    return;
  }
  reads.now = phase::ready;
  reads.direct->possible = true;
  reads.slots = std::make_shared<device_region>(caf::actor_cast<device_actor>(self), region, state.process,
                                                false, 0U, nullptr);
  for (uint64_t slot = 0; slot < slots; ++slot)
    reads.free_slots.push_back(slot);
  for (auto& [number, file] : reads.files)
    add_file(self, file);
}

void open_reads(device_pointer self) {
  auto& state = self->state;
  state.reads.now = phase::opening;
  state.reads.direct->possible = false;
  state.with.record->begin(state.process);
  show_reads(self);
  process_packet packet;
  packet.message.verb = process_verb::open_reads;
  packet.message.bytes = state.with.direct_bytes;
  const uint64_t region = state.next_id; // number of the request
  packet.message.region = region;
  ask_process(
      self, std::move(packet),
      [self, region](const error& failure, const process_packet&) { on_opened(self, region, failure); },
      patience::endless); // it may take seconds
}

} // namespace

error not_yet(device_pointer self, const direct_read_request& request) {
  auto& reads = self->state.reads;
  if (!reads.direct || reads.now == phase::refused)
    return {errc::unsupported, subject(self) + " reads no disks itself"};
  if (reads.late == slots)
    return {errc::busy, subject(self) + ": " + all_late(self)};
  if (reads.now == phase::unknown)
    open_reads(self);
  error why;
  for (const object_in_file& object : request.files) {
    device_reads::file& file = file_of(self, object.file);
    if (file.now == phase::unknown && reads.now == phase::ready)
      add_file(self, file);
    if (file.now == phase::refused)
      return {errc::unsupported, subject(self) + " does not read " + object.file->path + " itself"};
    if (file.now != phase::ready)
      why = {errc::busy, subject(self) + " does not read " + object.file->path + " itself yet"};
  }
  return why;
}

void begin_reads(device_pointer self) {
  auto& state = self->state;
  if (state.with.direct_bytes != 0)
    state.reads.direct = std::make_shared<direct_reads>(state.with.direct_bytes / slots);
  begin_anew(self);
}

void refuse_reads(device_pointer self, const std::string& why) {
  auto& state = self->state;
  auto& reads = state.reads;
  reads.now = phase::refused;
  reads.refusal = why;
  reads.direct->possible = false;
  show_reads(self);
  state.with.warn(subject(self) + " reads no disks itself any more: " + why);
  stop_line(self, {errc::unsupported, why});
}

void on_late_slots(device_pointer self, size_t late) {
  auto& state = self->state;
  auto& reads = state.reads;
  const bool none = late == slots, none_before = reads.late == slots;
  reads.late = late;
  state.with.probe->shows_late_disk_slots(late);
  if (none == none_before || reads.now != phase::ready || state.now != device_state::phase::ready)
    return;
  reads.direct->possible = !none;
  show_reads(self);
  if (none) {
    state.with.warn(subject(self) + " reads no disks itself until one is over: " + all_late(self));
    stop_line(self, {errc::busy, all_late(self)});
  } else {
    state.with.log(subject(self) + " reads disks itself again: a read that was late is over");
  }
}

void blame_reads(device_pointer self) {
  auto& state = self->state;
  auto& reads = state.reads;
  auto& record = *state.with.record;
  if (!reads.slots && reads.now != phase::opening)
    return; // the library is not open
  const bool before = record.given_up();
  record.lost(state.process);
  if (!before && record.given_up())
    state.with.warn(subject(self) + " reads no disks itself any more: " + lost_too_often(self));
}

void lose_reads(device_pointer self, const error& why) {
  auto& state = self->state;
  auto& reads = state.reads;
  assert(reads.late == 0); // everything that the process was asked has been answered
  reads.slots = nullptr;
  reads.free_slots.clear();
  reads.told = false;
  for (auto& [number, file] : reads.files)
    enter(reads, file, phase::unknown);
  reads.refused_file.clear();
  begin_anew(self);
  stop_line(self, why);
}

} // namespace terrace::actors
