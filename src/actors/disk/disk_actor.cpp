#include "actors/disk/disk_actor.hpp"

#include "actors/disk/stall_tick.hpp"
#include "runtime/answer.hpp"
#include "runtime/io_port.hpp"
#include "runtime/ring.hpp"
#include "runtime/turns.hpp"
#include "storage/disk/disk_queue.hpp"
#include "storage/disk/path_health.hpp"
#include "storage/disk/registered_memory.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <cassert>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace terrace::actors {

namespace {

using clock = std::chrono::steady_clock;

// Tags that are not operations of the path: a tick of the detector, the end of a pause, by direction, and the
// reads of the superblock.
constexpr uint64_t begin_tag = 1ULL << 58; // what the file begins with has arrived
constexpr uint64_t look_tag = 1ULL << 59;  // it is time to look at the file
constexpr uint64_t seen_tag = 1ULL << 60;  // the file's attributes have arrived
constexpr uint64_t tick_tag = 1ULL << 61;
constexpr uint64_t pause_tag = 1ULL << 62;
constexpr uint64_t trial_tag = 1ULL << 63;

/// The file's attributes as the kernel returns them, and the name by which they are requested.
struct look_at_file {
  std::string path;
  struct statx seen {};
};

struct disk_state;
using disk_pointer = caf::stateful_actor<disk_state, runtime::turns<runtime::homed<disk_actor::base>>>*;

/// The ring of the disk's worker.
class disk_ring final : public path_output {
 public:
  explicit disk_ring(disk_pointer self) : self_(self) {}
  void submit(uint64_t tag, disk_queue::transfer moving) override;
  void cancel(uint64_t tag) override;
  void pause(disk_direction direction, std::chrono::milliseconds how_long) override;
  void read_superblock() override;
  void warn(const std::string& line) override;
  void wait(std::chrono::nanoseconds how_long, uint64_t tag);
  /// Reads both copies into the block, which is made if there is none.
  void read_superblock(std::shared_ptr<std::byte>& into, uint64_t tag);

 private:
  disk_pointer self_;
};

struct disk_state {
  const char* name = "disk";
  disk_arguments with;
  std::unique_ptr<registered_memory> memory;
  std::unique_ptr<disk_ring> ring;
  std::unique_ptr<disk_path> path;
  std::vector<runtime::operation_id> in_kernel; ///< operations, by tag
  bool ticking = false;                         ///< a tick of the stall detector is in the ring
  bool trying = false;                          ///< a read of the superblock is in the ring
  std::shared_ptr<look_at_file> looked;
  bool reading_begin = false;                          ///< another one, as part of looking at the file
  std::shared_ptr<std::byte> trial_block, begin_block; ///< buffers for both copies of the superblock

  const extent_file& file() const { return *with.path.file; }
};

// ---- what the path does ----

runtime::operation_id in_ring(disk_pointer self, runtime::io_request request, uint64_t tag) {
  return self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

void disk_ring::submit(uint64_t tag, disk_queue::transfer moving) {
  auto& state = self_->state;
  runtime::io_request request;
  request.code = moving.direction == disk_direction::read ? runtime::io_code::read : runtime::io_code::write;
  request.fd = state.file().fd();
  request.offset = moving.file_offset;
  request.data = moving.memory;
  request.length = moving.bytes;
  request.fixed_buffer = state.memory->use(self_->port(), moving.memory, moving.bytes);
  request.keep_alive = std::const_pointer_cast<void>(std::move(moving.keep_alive));
  if (state.in_kernel.size() <= tag)
    state.in_kernel.resize(tag + 1);
  state.in_kernel[tag] = in_ring(self_, std::move(request), tag);
}

void disk_ring::cancel(uint64_t tag) { self_->port().cancel(self_->state.in_kernel[tag]); }

void disk_ring::pause(disk_direction direction, std::chrono::milliseconds how_long) {
  wait(how_long, pause_tag | static_cast<uint64_t>(direction));
}

void disk_ring::wait(std::chrono::nanoseconds how_long, uint64_t tag) {
  runtime::io_request timer;
  timer.code = runtime::io_code::timeout;
  timer.after = how_long;
  in_ring(self_, std::move(timer), tag);
}

void disk_ring::read_superblock() {
  auto& state = self_->state;
  assert(!state.trying);
  state.trying = true;
  read_superblock(state.trial_block, trial_tag);
}

void disk_ring::read_superblock(std::shared_ptr<std::byte>& into, uint64_t tag) {
  if (!into)
    into.reset(static_cast<std::byte*>(std::aligned_alloc(disk_alignment_bytes, 2 * superblock_bytes)),
               std::free);
  std::memset(into.get(), 0, 2 * superblock_bytes);
  runtime::io_request request;
  request.code = runtime::io_code::read;
  request.fd = self_->state.file().fd();
  request.data = into.get();
  request.length = 2 * superblock_bytes;
  request.keep_alive = into;
  in_ring(self_, std::move(request), tag);
}

std::span<const std::byte, 2 * superblock_bytes> both_copies(const std::shared_ptr<std::byte>& block) {
  return std::span<const std::byte, 2 * superblock_bytes>(block.get(), 2 * superblock_bytes);
}

void disk_ring::warn(const std::string& line) { self_->state.with.warn(line); }

// ---- the file ----

file_attributes attributes_of(const struct statx& seen) {
  return {seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino, seen.stx_size};
}

void look_later(disk_pointer self) {
  if (auto after = self->state.with.path.health.look_every; after.count() != 0)
    self->state.ring->wait(after, look_tag);
}

/// Looks at the file through the ring, because a file system that hangs must not hold the worker.
void on_look(disk_pointer self) {
  auto& state = self->state;
  state.looked = std::make_shared<look_at_file>();
  state.looked->path = state.file().path();
  runtime::io_request request;
  request.code = runtime::io_code::statx;
  request.path = state.looked->path.c_str();
  request.data = &state.looked->seen;
  request.keep_alive = state.looked;
  state.path->looking();
  in_ring(self, std::move(request), seen_tag);
}

void on_seen(disk_pointer self, int32_t result) {
  auto& state = self->state;
  state.path->looked(result < 0 ? -result : 0, attributes_of(state.looked->seen));
  if (!std::exchange(state.reading_begin, true))
    state.ring->read_superblock(state.begin_block, begin_tag);
  look_later(self);
}

void begin_looking(disk_pointer self) {
  struct statx opened {};
  if (::statx(self->state.file().fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &opened) != 0)
    return;
  self->state.path->opened(attributes_of(opened));
  look_later(self);
}

// ---- requests and completions ----

caf::result<disk_answer> on_request(disk_pointer self, const disk_request& request) {
  auto reply = make_answer<disk_answer>(self);
  auto promise = reply.promise();
  self->state.path->add(
      request, [reply](disk_answer value) mutable { reply.deliver(std::move(value)); }, clock::now());
  return promise;
}

void on_superblock(disk_pointer self, int32_t result) {
  auto& state = self->state;
  state.path->superblock_read(result, both_copies(state.trial_block), clock::now());
}

void on_tick(disk_pointer self) {
  assert(self->state.ticking);
  self->state.ticking = false;
  self->state.path->tick(clock::now());
}

void on_io_done(disk_pointer self, const runtime::io_done& done) {
  auto& path = *self->state.path;
  if (done.tag == trial_tag) {
    self->state.trying = false;
    if (done.result != -ECANCELED)
      on_superblock(self, done.result);
  } else if (done.tag == begin_tag) {
    self->state.reading_begin = false;
    path.begins(done.result, both_copies(self->state.begin_block));
  } else if (done.tag == seen_tag) {
    if (done.result != -ECANCELED)
      on_seen(self, done.result);
  } else if (done.tag == look_tag) {
    if (done.result == -ETIME)
      on_look(self);
  } else if (done.tag == tick_tag) {
    if (done.result == -ETIME)
      on_tick(self);
  } else if ((done.tag & pause_tag) != 0) {
    if (done.result == -ETIME)
      path.pause_over(static_cast<disk_direction>(done.tag & ~pause_tag));
  } else {
    path.completed(done.tag, done.result, clock::now());
  }
}

/// Operations may have been submitted.
void keep_watch(disk_pointer self) {
  auto& state = self->state;
  keep_ticking(self, state.path->watch(), state.ticking, state.with.path.health.stall_after, tick_tag);
}

disk_actor::behavior_type disk_behavior(disk_pointer self, const std::shared_ptr<disk_arguments>& arguments) {
  auto& state = self->state;
  state.with = std::move(*arguments);
  state.memory =
      std::make_unique<registered_memory>(std::move(state.with.segments), runtime::buffer_slot_bytes);
  state.ring = std::make_unique<disk_ring>(self);
  state.path = std::make_unique<disk_path>(state.with.path, *state.ring);
  begin_looking(self);
  self->each_turn(nullptr, [self] { keep_watch(self); });
  return self->in_turns(
      [self](register_memory) { self->state.memory->register_all(self->port()); },
      [self](const add_memory& added) {
        self->state.memory->add(self->port(), added.segment, added.committed);
      },
      [self](const forget_memory& gone) {
        self->state.memory->forget(self->port(), gone.begin);
        return retire_answer{};
      },
      [self](const disk_request& request) { return on_request(self, request); },
      [self](const journal_stalled& notice) { self->state.path->journal_stalled(notice.now, clock::now()); },
      [self](const runtime::io_done& done) { on_io_done(self, done); });
}

} // namespace

disk_actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments) {
  return runtime::spawn_homed(system, home, disk_behavior,
                              std::make_shared<disk_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
