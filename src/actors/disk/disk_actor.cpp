#include "actors/disk/disk_actor.hpp"

#include "actors/disk/disk_memory.hpp"
#include "actors/disk/stall_tick.hpp"
#include "coroutine/answer.hpp"
#include "disk/file_watch.hpp"
#include "disk/path_health.hpp"
#include "runtime/io_messages.hpp"
#include "storage/superblock.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace terrace::actors {

namespace {

using clock = std::chrono::steady_clock;

struct started {
  metrics::disk_operation operation{};
  uint32_t bytes = 0;
  clock::time_point at;
  runtime::operation_id id{};
};

/// The file's attributes as the kernel gives them, and the name by which it is looked at.
struct look_at_file {
  std::string path;
  struct statx seen {};
};

struct disk_state {
  const char* name = "disk";
  disk_arguments with;
  std::unique_ptr<disk_queue> queue;
  std::unique_ptr<disk_memory> memory;
  std::vector<started> in_kernel; ///< by tag
  bool ticking = false;           ///< a tick of the stall detector is in the ring
  std::unique_ptr<path_health> health;
  file_watch watched_file;
  std::shared_ptr<look_at_file> looked;
  std::shared_ptr<std::byte> trial_block; ///< buffer for both copies of the superblock
};

// Tags that are not operations of the queue: a tick of the detector, the end of a pause, by direction, and
// the read of the superblock.
constexpr uint64_t look_tag = 1ULL << 59; // it is time to look at the file
constexpr uint64_t seen_tag = 1ULL << 60; // its attributes are there
constexpr uint64_t tick_tag = 1ULL << 61;
constexpr uint64_t pause_tag = 1ULL << 62;
constexpr uint64_t trial_tag = 1ULL << 63;

static_assert(metrics::disk_lines.size() == io_classes);

using self_pointer = caf::stateful_actor<disk_state, runtime::homed<disk_actor::base>>*;

metrics::disk_operation operation_of(disk_direction direction) {
  return direction == disk_direction::read ? metrics::disk_operation::read : metrics::disk_operation::write;
}

disk_direction direction_of(const started& what) {
  return what.operation == metrics::disk_operation::read ? disk_direction::read : disk_direction::write;
}

void keep_watch(self_pointer self) {
  auto& state = self->state;
  keep_ticking(self, state.health->watch(), state.ticking, state.with.health.stall_after, tick_tag);
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
    state.health->started(tag, transfer.direction);
    if (transfer.first)
      state.with.probe->waited(static_cast<size_t>(transfer.what), now - transfer.queued);
    state.with.probe->started(state.in_kernel[tag].operation);
    runtime::io_request request;
    request.code = reads ? runtime::io_code::read : runtime::io_code::write;
    request.fd = state.with.file->fd();
    request.offset = transfer.file_offset;
    request.data = transfer.memory;
    request.length = transfer.bytes;
    request.fixed_buffer = state.memory->slot_of(transfer.memory, transfer.bytes);
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

void tell(self_pointer self) {
  auto& state = self->state;
  std::string reason = state.health->reason();
  if (std::string file = state.watched_file.reason(); !file.empty())
    reason += (reason.empty() ? "" : "; ") + file;
  state.with.service->set(state.with.path, state.health->reads(), state.health->writes(), std::move(reason),
                          [&state](bool any) { state.with.tier_probe->degraded(any); });
}

void start_pause(self_pointer self, disk_direction direction) {
  runtime::io_request pause;
  pause.code = runtime::io_code::timeout;
  pause.after = self->state.health->pause(direction);
  self->port().submit(std::move(pause), caf::actor_cast<caf::strong_actor_ptr>(self),
                      pause_tag | static_cast<uint64_t>(direction));
}

void degraded(self_pointer self, disk_direction direction) {
  auto& state = self->state;
  state.with.probe->degraded(operation_of(direction));
  start_pause(self, direction);
  tell(self); // so that status already shows what the log reports
  state.with.warn("the disk tier is degraded: " + state.health->reason(direction));
}

void end_trial(self_pointer self, disk_direction direction, int error_number) {
  auto& state = self->state;
  bool back = state.health->end_trial(direction, error_number, clock::now());
  if (back)
    state.watched_file.clear(); // until the next look
  if (!back)
    start_pause(self, direction);
  tell(self);
  if (back)
    state.with.warn("the disk tier is back: " + state.with.file->path() + " can be " +
                    (direction == disk_direction::read ? "read" : "written") + " again");
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

int outcome_of_trial(const disk_state& state, int32_t result) {
  std::span<const std::byte, 2 * superblock_bytes> both(state.trial_block.get(), 2 * superblock_bytes);
  return error_of_trial(result, both, state.with.file->volume(), state.with.file->path_index());
}

void on_pause_over(self_pointer self, disk_direction direction) {
  if (!self->state.health->begin_trial(direction))
    return; // until stalled operations end
  if (direction == disk_direction::read)
    read_superblock(self);
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
  if (state.health->stalled(direction, clock::now()))
    degraded(self, direction);
  state.queue->stalled(tag);
  state.queue->fail_waiting(direction, ETIMEDOUT);
}

void on_tick(self_pointer self) {
  self->state.ticking = false;
  auto told = self->state.health->tick();
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
  if (state.health->awaits_stalled(direction))
    on_pause_over(self, direction);
  tell(self);
}

void on_journal_stalled(self_pointer self, bool hangs) {
  auto& state = self->state;
  bool now_degraded = state.health->journal_stalled(hangs, clock::now());
  if (!hangs) {
    state.with.probe->unstalled(metrics::disk_operation::write);
    if (state.health->awaits_stalled(disk_direction::write))
      on_pause_over(self, disk_direction::write);
  } else {
    state.with.probe->stalled(metrics::disk_operation::write);
    if (now_degraded)
      degraded(self, disk_direction::write);
    state.queue->fail_waiting(disk_direction::write, ETIMEDOUT);
  }
  tell(self);
}

// ---- the file ----

file_attributes attributes_of(const struct statx& seen) {
  return {seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino, seen.stx_size};
}

void look_later(self_pointer self) {
  if (self->state.with.health.look_every.count() == 0)
    return;
  runtime::io_request timer;
  timer.code = runtime::io_code::timeout;
  timer.after = self->state.with.health.look_every;
  self->port().submit(std::move(timer), caf::actor_cast<caf::strong_actor_ptr>(self), look_tag);
}

/// In the ring, because a file system that hangs must not hold the worker.
void look(self_pointer self) {
  auto& state = self->state;
  state.looked = std::make_shared<look_at_file>();
  state.looked->path = state.with.file->path();
  runtime::io_request request;
  request.code = runtime::io_code::statx;
  request.path = state.looked->path.c_str();
  request.data = &state.looked->seen;
  request.keep_alive = state.looked;
  state.with.probe->looking(true);
  self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), seen_tag);
}

metrics::disk_damage kind_of(file_damage damage) {
  return damage == file_damage::deleted    ? metrics::disk_damage::deleted
         : damage == file_damage::replaced ? metrics::disk_damage::replaced
                                           : metrics::disk_damage::truncated;
}

void seen(self_pointer self, int32_t result) {
  auto& state = self->state;
  state.with.probe->looking(false);
  auto news = state.watched_file.look(result < 0 ? -result : 0, attributes_of(state.looked->seen));
  look_later(self);
  if (news == file_watch::news::none)
    return;
  tell(self); // so that status already shows what the log reports
  if (news == file_watch::news::again)
    return;
  if (state.watched_file.now() == file_damage::none) {
    bool back = state.with.service->reason(state.with.path).empty(); // otherwise its device is out of service
    state.with.warn((back ? "the disk tier is back: " : "") + state.with.file->path() +
                    " is the file that was opened again");
    return;
  }
  state.with.probe->damaged(kind_of(state.watched_file.now()));
  state.with.warn("the disk tier is degraded: " + state.watched_file.reason());
}

void begin_looking(self_pointer self) {
  auto& state = self->state;
  struct statx opened {};
  if (::statx(state.with.file->fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &opened) != 0)
    return;
  auto expected = attributes_of(opened);
  expected.bytes = std::max(expected.bytes, state.with.file->capacity_bytes()); // it may be cut off by now
  state.watched_file = file_watch(state.with.file->path(), expected);
  look_later(self);
}

// ---- requests and completions ----

caf::result<disk_answer> on_request(self_pointer self, const disk_request& request) {
  auto reply = make_answer<disk_answer>(self);
  auto admission = self->state.health->admit(request.direction);
  if (!admission.granted) {
    reply.fail({errc::busy,
                "the disk is out of service: " + self->state.with.service->reason(self->state.with.path)});
    return reply.promise();
  }
  auto direction = request.direction;
  auto answered = [self, reply, direction, trial = admission.trial](disk_answer value) mutable {
    if (trial) {
      auto bad = std::find_if(value.failed.begin(), value.failed.end(), [](int e) { return e != 0; });
      end_trial(self, direction, bad == value.failed.end() ? 0 : *bad);
    }
    value.out_of_service = !self->state.health->healthy(direction);
    reply.deliver(std::move(value));
  };
  self->state.queue->add(request, std::move(answered), clock::now());
  submit(self);
  return reply.promise();
}

void on_completed(self_pointer self, const runtime::io_done& done) {
  auto& state = self->state;
  const started& what = state.in_kernel[done.tag];
  bool failed = done.result <= 0;
  state.with.probe->finished(what.operation, failed ? 0 : static_cast<uint64_t>(done.result), failed,
                             clock::now() - what.at);
  auto direction = direction_of(what);
  if (state.health->ended(done.tag)) {
    came_back(self, done.tag, direction);
    return;
  }
  // Health first: the following answers depend on whether the device is in service.
  if (state.health->completed(direction, done.result, clock::now()))
    degraded(self, direction);
  state.queue->completed(done.tag, done.result);
  if (int error_number = state.health->error_of_waiting(direction); error_number != 0)
    state.queue->fail_waiting(direction, error_number);
  submit(self);
}

void on_io_done(self_pointer self, const runtime::io_done& done) {
  if (done.tag == trial_tag) {
    if (done.result != -ECANCELED)
      end_trial(self, disk_direction::read, outcome_of_trial(self->state, done.result));
  } else if (done.tag == seen_tag) {
    if (done.result != -ECANCELED)
      seen(self, done.result);
  } else if (done.tag == look_tag) {
    if (done.result == -ETIME)
      look(self);
  } else if (done.tag == tick_tag) {
    if (done.result == -ETIME)
      on_tick(self);
  } else if ((done.tag & pause_tag) != 0) {
    if (done.result == -ETIME)
      on_pause_over(self, static_cast<disk_direction>(done.tag & ~pause_tag));
  } else {
    on_completed(self, done);
  }
}

disk_actor::behavior_type disk_behavior(self_pointer self, const std::shared_ptr<disk_arguments>& arguments) {
  auto& state = self->state;
  state.with = std::move(*arguments);
  state.queue = std::make_unique<disk_queue>(state.with.limits);
  state.health = std::make_unique<path_health>(state.with.file->path(), state.with.health);
  state.memory = std::make_unique<disk_memory>(std::move(state.with.segments));
  begin_looking(self);
  return {
      [self](register_memory) { self->state.memory->register_all(self->port()); },
      [self](const add_memory& added) {
        self->state.memory->add(self->port(), added.segment, added.committed);
      },
      [self](const forget_memory& gone) {
        self->state.memory->forget(self->port(), gone.begin);
        return retire_answer{};
      },
      [self](const disk_request& request) { return on_request(self, request); },
      [self](const journal_stalled& notice) { on_journal_stalled(self, notice.now); },
      [self](const runtime::io_done& done) { on_io_done(self, done); },
  };
}

} // namespace

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments) {
  return runtime::spawn_homed(system, home, disk_behavior,
                              std::make_shared<disk_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
