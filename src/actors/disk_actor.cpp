#include "actors/disk_actor.hpp"

#include "actors/answer.hpp"
#include "runtime/io_messages.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <chrono>

namespace terrace::actors {

namespace {

using clock = std::chrono::steady_clock;

struct registered_segment {
  std::byte* begin = nullptr;
  uint64_t bytes = 0;
  int slot = -1; ///< -1: plain buffers
};

struct started {
  metrics::disk_operation operation{};
  uint32_t bytes = 0;
  clock::time_point at;
};

struct disk_state {
  const char* name = "disk";
  std::shared_ptr<const extent_file> file;
  std::unique_ptr<disk_queue> queue;
  std::vector<registered_segment> segments;
  std::vector<started> in_kernel; ///< by tag
  std::shared_ptr<metrics::disk_probe> probe;
  bool registered = false;
};

static_assert(metrics::disk_lines.size() == io_classes);

using self_pointer = caf::stateful_actor<disk_state, runtime::homed_actor>*;

/// The registered buffer that holds the memory, or -1. An arena is registered in slots of 1 GiB, and a segment is at
/// most one slot.
int fixed_buffer(const disk_state& state, const std::byte* memory, uint64_t bytes) {
  for (const registered_segment& segment : state.segments)
    if (segment.slot >= 0 && memory >= segment.begin && memory + bytes <= segment.begin + segment.bytes)
      return segment.slot;
  return -1;
}

void submit(self_pointer self) {
  auto& state = self->state;
  while (auto next = state.queue->next()) {
    auto& [tag, transfer] = *next;
    bool reads = transfer.direction == disk_direction::read;
    if (state.in_kernel.size() <= tag)
      state.in_kernel.resize(tag + 1);
    auto now = clock::now();
    state.in_kernel[tag] = {reads ? metrics::disk_operation::read : metrics::disk_operation::write,
                            transfer.bytes, now};
    if (transfer.first)
      state.probe->waited(static_cast<size_t>(transfer.what), now - transfer.queued);
    state.probe->started(state.in_kernel[tag].operation);
    runtime::io_request request;
    request.code = reads ? runtime::io_code::read : runtime::io_code::write;
    request.fd = state.file->fd();
    request.offset = transfer.file_offset;
    request.data = transfer.memory;
    request.length = transfer.bytes;
    request.fixed_buffer = fixed_buffer(state, transfer.memory, transfer.bytes);
    request.keep_alive = std::const_pointer_cast<void>(std::move(transfer.keep_alive));
    self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
  }
  for (size_t i = 0; i < io_classes; ++i) {
    auto which = static_cast<io_class>(i);
    state.probe->line(i, state.queue->waiting(which), state.queue->bytes_in_flight(which));
  }
}

void completed(self_pointer self, const runtime::io_done& done) {
  auto& state = self->state;
  const started& what = state.in_kernel[done.tag];
  bool failed = done.result <= 0;
  state.probe->finished(what.operation, failed ? 0 : static_cast<uint64_t>(done.result), failed,
                        clock::now() - what.at);
  state.queue->completed(done.tag, done.result);
  submit(self);
}

caf::behavior disk_behavior(self_pointer self, const std::shared_ptr<disk_arguments>& arguments) {
  auto& state = self->state;
  state.file = arguments->file;
  state.queue = std::make_unique<disk_queue>(arguments->limits);
  state.probe = arguments->probe;
  for (auto [begin, bytes] : arguments->arena)
    state.segments.push_back({begin, bytes, -1});
  return {
      [self](register_memory) {
        for (registered_segment& segment : self->state.segments)
          if (segment.slot < 0)
            segment.slot = self->port().register_arena(segment.begin, segment.bytes);
      },
      [self](const disk_request& request) {
        auto reply = make_answer<disk_answer>(self);
        self->state.queue->add(
            request, [reply](disk_answer value) mutable { reply.deliver(std::move(value)); }, clock::now());
        submit(self);
        return reply.promise();
      },
      [self](const runtime::io_done& done) { completed(self, done); },
  };
}

} // namespace

caf::actor spawn_disk(caf::actor_system& system, const runtime::home& home, disk_arguments arguments) {
  return runtime::spawn_homed(system, home, disk_behavior,
                              std::make_shared<disk_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
