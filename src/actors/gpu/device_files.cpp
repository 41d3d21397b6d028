// The files that the process of the device reads itself, and the library that reads them.
#include "actors/gpu/device_state.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace terrace::actors {

namespace {

using gpu::process_verb;
using phase = device_reads::phase;

constexpr uint64_t slots = gpu::disk_reader::slots;

std::string lost_too_often(device_pointer self) {
  return std::to_string(self->state.reads.record.losses()) + " of its processes ended while they read disks";
}

/// Loads do not ask for a file that they cannot have.
void enter(device_reads& reads, device_reads::file& file, phase next) {
  file.now = next;
  auto what = file.what.lock();
  if (!what)
    return;
  if (next == phase::opening || next == phase::refused)
    reads.direct->unread.add(*what);
  else
    reads.direct->unread.remove(*what);
}

void on_file_added(device_pointer self, uint64_t number, const std::string& path, const error& failure) {
  auto& state = self->state;
  if (failure.code == errc::gone)
    return;
  enter(state.reads, state.reads.files.at(number), failure.code == errc::ok ? phase::ready : phase::refused);
  if (failure.code == errc::ok) {
    state.with.probe->reads_disks(state.reads.refused_file.empty() ? "yes"
                                                                   : "not all: " + state.reads.refused_file);
    state.with.log(subject(self) + " reads " + path + " itself");
    return;
  }
  const std::string text = path + " is read through host memory: " + failure.text;
  state.reads.refused_file = text;
  state.with.probe->reads_disks("not all: " + text);
  state.with.log(subject(self) + ": " + text);
}

void add_file(device_pointer self, device_reads::file& file) {
  auto what = file.what.lock();
  if (!what)
    return; // its disk ends, and the daemon
  enter(self->state.reads, file, phase::opening);
  process_packet packet;
  packet.what.verb = process_verb::add_file;
  packet.what.region = what->number;
  packet.descriptor = std::shared_ptr<unique_fd>(what, &what->descriptor);
  ask_process(
      self, std::move(packet),
      [self, number = what->number, path = what->path](const error& failure, const process_packet&) {
        on_file_added(self, number, path, failure);
      },
      patience::endless);
}

device_reads::file& file_of(device_pointer self, const std::shared_ptr<named_file>& what) {
  return self->state.reads.files.try_emplace(what->number, device_reads::file{what}).first->second;
}

void on_opened(device_pointer self, uint64_t region, const error& failure) {
  auto& state = self->state;
  auto& reads = state.reads;
  if (failure.code == errc::gone || reads.now != phase::opening)
    return; // the process is lost
  if (failure.code != errc::ok) {
    reads.now = phase::refused;
    state.with.probe->reads_disks("no: " + failure.text);
    state.with.log(subject(self) + " reads no disks itself (gpu.direct_disk): " + failure.text);
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
  state.reads.record.begin(state.process);
  state.with.probe->reads_disks("opening");
  process_packet packet;
  packet.what.verb = process_verb::open_reads;
  packet.what.bytes = state.with.direct_bytes;
  const uint64_t region = state.next_id; // that of the request
  packet.what.region = region;
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
  state.with.probe->reads_disks(state.reads.direct ? "not tried" : "off");
}

void blame_reads(device_pointer self) {
  auto& state = self->state;
  auto& reads = state.reads;
  const bool reading = std::any_of(reads.works.begin(), reads.works.end(),
                                   [&](const disk_work& work) { return work.process == state.process; });
  const bool opening = reads.now == phase::opening ||
                       std::any_of(reads.files.begin(), reads.files.end(),
                                   [](const auto& one) { return one.second.now == phase::opening; });
  if (!reading && !opening)
    return;
  const bool before = reads.record.given_up();
  reads.record.lost(state.process);
  if (!before && reads.record.given_up())
    state.with.warn(subject(self) + " reads no disks itself any more: " + lost_too_often(self));
}

void lose_reads(device_pointer self, const error& why) {
  auto& state = self->state;
  auto& reads = state.reads;
  const bool given_up = reads.record.given_up();
  reads.now = given_up ? phase::refused : phase::unknown;
  reads.slots = nullptr;
  reads.free_slots.clear();
  for (auto& [number, file] : reads.files)
    enter(reads, file, phase::unknown);
  if (reads.direct) {
    reads.direct->possible = !given_up;
    state.with.probe->reads_disks(given_up ? "no: " + lost_too_often(self) : "not tried");
  }
  reads.refused_file.clear();
  stop_line(self, why);
}

} // namespace terrace::actors
