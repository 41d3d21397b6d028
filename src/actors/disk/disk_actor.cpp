#include "actors/disk/disk_actor.hpp"

#include "actors/disk/stall_tick.hpp"
#include "coroutine/answer.hpp"
#include "runtime/io_messages.hpp"
#include "storage/superblock.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace terrace::actors {

namespace {

using clock = std::chrono::steady_clock;

struct registered_segment {
  std::shared_ptr<const arena> what;
  int slot = -1; ///< -1: plain buffers
};

struct started {
  metrics::disk_operation operation{};
  uint32_t bytes = 0;
  clock::time_point at;
  runtime::operation_id id{};
};

/// The service state of one direction of the device.
struct direction_state {
  device_health health;
  bool in_trial = false;       ///< a request, or a read of the superblock, decides whether the device is back
  bool awaits_stalled = false; ///< the pause is over, and the trial waits for stalled operations
};

struct disk_state {
  const char* name = "disk";
  disk_arguments with;
  std::unique_ptr<disk_queue> queue;
  std::vector<registered_segment> segments;
  std::vector<started> in_kernel; ///< by tag
  stall_detector watch{ticks_of_patience};
  bool ticking = false; ///< a tick of the detector is in the ring
  bool journal_hangs = false;
  std::array<direction_state, 2> directions;
  std::shared_ptr<std::byte> trial_block; ///< buffer for both copies of the superblock

  direction_state& of(disk_direction direction) { return directions[static_cast<size_t>(direction)]; }
  /// Operations in this direction, including the journal's, that the kernel has not completed.
  size_t stalled(disk_direction direction) const {
    return watch.stalled(static_cast<size_t>(direction)) +
           (direction == disk_direction::write && journal_hangs ? 1 : 0);
  }
};

// Tags that are not operations of the queue: a tick of the detector, the end of a pause, by direction, and
// the read of the superblock.
constexpr uint64_t tick_tag = 1ULL << 61;
constexpr uint64_t pause_tag = 1ULL << 62;
constexpr uint64_t trial_tag = 1ULL << 63;

static_assert(metrics::disk_lines.size() == io_classes);

using self_pointer = caf::stateful_actor<disk_state, runtime::homed<disk_actor::base>>*;

/// The registered buffer that contains the memory, or -1. An arena is registered in slots of 1 GiB, and a
/// segment is at most one slot.
int fixed_buffer(const disk_state& state, const std::byte* memory, uint64_t bytes) {
  for (const registered_segment& segment : state.segments)
    if (segment.slot >= 0 && memory >= segment.what->data() &&
        memory + bytes <= segment.what->data() + segment.what->size())
      return segment.slot;
  return -1;
}

metrics::disk_operation operation_of(disk_direction direction) {
  return direction == disk_direction::read ? metrics::disk_operation::read : metrics::disk_operation::write;
}

disk_direction direction_of(const started& what) {
  return what.operation == metrics::disk_operation::read ? disk_direction::read : disk_direction::write;
}

void keep_watch(self_pointer self) {
  auto& state = self->state;
  keep_ticking(self, state.watch, state.ticking, state.with.health.stall_after, tick_tag);
}

void submit(self_pointer self) {
  auto& state = self->state;
  while (auto next = state.queue->next()) {
    auto& [tag, transfer] = *next;
    bool reads = transfer.direction == disk_direction::read;
    if (state.in_kernel.size() <= tag)
      state.in_kernel.resize(tag + 1);
    auto now = clock::now();
    state.in_kernel[tag] = {operation_of(transfer.direction), transfer.bytes, now, {}};
    state.watch.started(tag, static_cast<size_t>(transfer.direction));
    if (transfer.first)
      state.with.probe->waited(static_cast<size_t>(transfer.what), now - transfer.queued);
    state.with.probe->started(state.in_kernel[tag].operation);
    runtime::io_request request;
    request.code = reads ? runtime::io_code::read : runtime::io_code::write;
    request.fd = state.with.file->fd();
    request.offset = transfer.file_offset;
    request.data = transfer.memory;
    request.length = transfer.bytes;
    request.fixed_buffer = fixed_buffer(state, transfer.memory, transfer.bytes);
    request.keep_alive = std::const_pointer_cast<void>(std::move(transfer.keep_alive));
    state.in_kernel[tag].id =
        self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
  }
  keep_watch(self);
  for (size_t i = 0; i < io_classes; ++i) {
    auto which = static_cast<io_class>(i);
    state.with.probe->line(i, state.queue->waiting(which), state.queue->bytes_in_flight(which));
  }
}

// ---- health ----

const char* verb_of(disk_direction direction) {
  return direction == disk_direction::read ? "read" : "written";
}

std::string describe(const disk_state& state, disk_direction direction) {
  const device_health& health = state.directions[static_cast<size_t>(direction)].health;
  std::string text = state.with.file->path() + " cannot be " + verb_of(direction) + ": ";
  if (size_t stalled = state.stalled(direction); stalled != 0)
    return text + std::to_string(stalled) + (stalled == 1 ? " operation has" : " operations have") +
           " not completed for more than " + std::to_string(state.with.health.stall_after.count()) +
           " ms; retried when the kernel has completed all of them";
  return text + std::strerror(health.error_number()) + "; retried every " +
         std::to_string(health.pause().count()) + " ms";
}

void tell(self_pointer self) {
  auto& state = self->state;
  std::string reason;
  for (disk_direction direction : {disk_direction::read, disk_direction::write})
    if (!state.of(direction).health.healthy())
      reason += (reason.empty() ? "" : "; ") + describe(state, direction);
  const device_health& reads = state.of(disk_direction::read).health;
  const device_health& writes = state.of(disk_direction::write).health;
  // A device that cannot be read is not written to.
  bool may_write = reads.healthy() && writes.now() != device_health::state::degraded;
  state.with.service->set(state.with.path, reads.healthy(), may_write, std::move(reason),
                          [&state](bool any) { state.with.tier_probe->degraded(any); });
}

void start_pause(self_pointer self, disk_direction direction) {
  runtime::io_request pause;
  pause.code = runtime::io_code::timeout;
  pause.after = self->state.of(direction).health.pause();
  self->port().submit(std::move(pause), caf::actor_cast<caf::strong_actor_ptr>(self),
                      pause_tag | static_cast<uint64_t>(direction));
}

void degraded(self_pointer self, disk_direction direction) {
  auto& state = self->state;
  state.with.probe->degraded(operation_of(direction));
  start_pause(self, direction);
  tell(self); // so that status already shows what the log reports
  state.with.warn("the disk tier is degraded: " + describe(state, direction));
}

void end_trial(self_pointer self, disk_direction direction, int error_number) {
  auto& state = self->state;
  direction_state& tried = state.of(direction);
  tried.in_trial = false;
  if (error_number == 0 && state.stalled(direction) != 0)
    error_number = ETIMEDOUT;
  bool back = tried.health.end_trial(error_number, clock::now());
  if (!back)
    start_pause(self, direction);
  tell(self);
  if (back)
    state.with.warn("the disk tier is back: " + state.with.file->path() + " can be " + verb_of(direction) +
                    " again");
}

void read_superblock(self_pointer self) {
  auto& state = self->state;
  if (!state.trial_block)
    state.trial_block.reset(
        static_cast<std::byte*>(std::aligned_alloc(disk_alignment_bytes, 2 * superblock_bytes)), std::free);
  std::memset(state.trial_block.get(), 0, 2 * superblock_bytes);
  runtime::io_request request;
  request.code = runtime::io_code::read;
  request.fd = state.with.file->fd();
  request.data = state.trial_block.get();
  request.length = 2 * superblock_bytes;
  request.keep_alive = state.trial_block;
  self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), trial_tag);
}

/// The superblock must be that of this path and volume: a file that was truncated and extended again is a
/// different one.
int outcome_of_trial(const disk_state& state, int32_t result) {
  if (result < 0)
    return -result;
  if (result != static_cast<int32_t>(2 * superblock_bytes))
    return EIO;
  std::span<const std::byte, 2 * superblock_bytes> both(state.trial_block.get(), 2 * superblock_bytes);
  auto found = newest_superblock(both);
  bool same = found && found->volume == state.with.file->volume() &&
              found->path_index == state.with.file->path_index();
  return same ? 0 : ESTALE;
}

void pause_is_over(self_pointer self, disk_direction direction) {
  direction_state& one = self->state.of(direction);
  one.awaits_stalled = self->state.stalled(direction) != 0;
  if (one.awaits_stalled)
    return;
  one.health.begin_trial();
  if (direction == disk_direction::read) {
    one.in_trial = true;
    read_superblock(self);
  }
  tell(self);
}

// ---- stalls ----

/// Its request is answered as failed, and nothing new is submitted in that direction; its memory stays with
/// the kernel.
void stalled(self_pointer self, uint64_t tag) {
  auto& state = self->state;
  const started& what = state.in_kernel[tag];
  auto direction = direction_of(what);
  state.with.probe->stalled(what.operation);
  self->port().cancel(what.id); // if the kernel can
  if (state.of(direction).health.stalled(clock::now()))
    degraded(self, direction);
  state.queue->stalled(tag);
  state.queue->fail_waiting(direction, ETIMEDOUT);
}

void tick(self_pointer self) {
  self->state.ticking = false;
  auto told = self->state.watch.tick();
  for (uint64_t tag : told)
    stalled(self, tag);
  if (!told.empty())
    tell(self);
  submit(self);
}

/// An operation completed whose request was already answered.
void came_back(self_pointer self, uint64_t tag, disk_direction direction) {
  auto& state = self->state;
  state.with.probe->unstalled(operation_of(direction));
  state.queue->completed(tag, -ETIMEDOUT);
  if (state.of(direction).awaits_stalled)
    pause_is_over(self, direction);
  tell(self);
}

void journal_says(self_pointer self, bool hangs) {
  auto& state = self->state;
  direction_state& writes = state.of(disk_direction::write);
  state.journal_hangs = hangs;
  if (!hangs) {
    state.with.probe->unstalled(metrics::disk_operation::write);
    if (writes.awaits_stalled)
      pause_is_over(self, disk_direction::write);
  } else {
    state.with.probe->stalled(metrics::disk_operation::write);
    if (writes.health.stalled(clock::now()))
      degraded(self, disk_direction::write);
    state.queue->fail_waiting(disk_direction::write, ETIMEDOUT);
  }
  tell(self);
}

// ---- requests and completions ----

/// True if the request may be tried; `trial`: its outcome decides.
bool admit(self_pointer self, disk_direction direction, bool& trial) {
  auto& state = self->state;
  direction_state& one = state.of(direction);
  if (direction == disk_direction::write && !state.of(disk_direction::read).health.healthy())
    return false;
  trial = direction == disk_direction::write && one.health.now() == device_health::state::probing &&
          !one.in_trial;
  one.in_trial = one.in_trial || trial;
  return one.health.healthy() || trial;
}

caf::result<disk_answer> take(self_pointer self, const disk_request& request) {
  auto reply = make_answer<disk_answer>(self);
  bool trial = false;
  if (!admit(self, request.direction, trial)) {
    reply.fail({errc::busy,
                "the disk is out of service: " + self->state.with.service->reason(self->state.with.path)});
    return reply.promise();
  }
  auto direction = request.direction;
  auto answered = [self, reply, direction, trial](disk_answer value) mutable {
    if (trial) {
      auto bad = std::find_if(value.failed.begin(), value.failed.end(), [](int e) { return e != 0; });
      end_trial(self, direction, bad == value.failed.end() ? 0 : *bad);
    }
    value.out_of_service = !self->state.of(direction).health.healthy();
    reply.deliver(std::move(value));
  };
  self->state.queue->add(request, std::move(answered), clock::now());
  submit(self);
  return reply.promise();
}

void completed(self_pointer self, const runtime::io_done& done) {
  auto& state = self->state;
  const started& what = state.in_kernel[done.tag];
  bool failed = done.result <= 0;
  state.with.probe->finished(what.operation, failed ? 0 : static_cast<uint64_t>(done.result), failed,
                             clock::now() - what.at);
  auto direction = direction_of(what);
  if (state.watch.ended(done.tag)) {
    came_back(self, done.tag, direction);
    return;
  }
  // Health first: the following answers depend on whether the device is in service.
  bool now_degraded = false;
  if (!failed)
    state.of(direction).health.succeeded();
  else if (done.result != -EAGAIN && done.result != -EINTR && done.result != -ECANCELED)
    now_degraded = state.of(direction).health.failed(done.result == 0 ? EIO : -done.result, clock::now());
  if (now_degraded)
    degraded(self, direction);
  state.queue->completed(done.tag, done.result);
  if (!state.of(direction).health.healthy() && !state.of(direction).in_trial)
    state.queue->fail_waiting(direction, state.of(direction).health.error_number());
  submit(self);
}

void io_done(self_pointer self, const runtime::io_done& done) {
  if (done.tag == trial_tag) {
    if (done.result != -ECANCELED)
      end_trial(self, disk_direction::read, outcome_of_trial(self->state, done.result));
  } else if (done.tag == tick_tag) {
    if (done.result == -ETIME)
      tick(self);
  } else if ((done.tag & pause_tag) != 0) {
    if (done.result == -ETIME)
      pause_is_over(self, static_cast<disk_direction>(done.tag & ~pause_tag));
  } else {
    completed(self, done);
  }
}

disk_actor::behavior_type disk_behavior(self_pointer self, const std::shared_ptr<disk_arguments>& arguments) {
  auto& state = self->state;
  state.with = std::move(*arguments);
  state.queue = std::make_unique<disk_queue>(state.with.limits);
  for (direction_state& one : state.directions)
    one.health = device_health(state.with.health);
  for (auto& segment : state.with.segments)
    state.segments.push_back({std::move(segment), -1});
  return {
      [self](register_memory) {
        for (registered_segment& segment : self->state.segments)
          if (segment.slot < 0)
            segment.slot = self->port().register_arena(segment.what->data(), segment.what->size());
      },
      [self](const add_memory& added) {
        for (const registered_segment& segment : self->state.segments)
          if (segment.what == added.segment)
            return; // it was already there when the disk was added
        int slot = self->port().register_arena(added.segment->data(), added.segment->size());
        self->state.segments.push_back({added.segment, slot});
      },
      [self](const forget_memory& gone) {
        std::erase_if(self->state.segments, [&](const registered_segment& segment) {
          bool is = segment.what->data() == gone.begin;
          if (is)
            self->port().unregister_arena(segment.slot, segment.what->size());
          return is;
        });
        return retire_answer{};
      },
      [self](const disk_request& request) { return take(self, request); },
      [self](const journal_stalled& notice) { journal_says(self, notice.now); },
      [self](const runtime::io_done& done) { io_done(self, done); },
  };
}

} // namespace

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments) {
  return runtime::spawn_homed(system, home, disk_behavior,
                              std::make_shared<disk_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
