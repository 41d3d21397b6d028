#include "actors/disk/disk_actor.hpp"

#include "actors/disk/stall_tick.hpp"
#include "runtime/answer.hpp"
#include "runtime/io_port.hpp"
#include "storage/disk/path_journal.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

constexpr uint64_t io_tag = 0;
constexpr uint64_t watch_tag = 1;

struct journal_state {
  const char* name = "journal";
  std::shared_ptr<const extent_file> file;
  std::optional<path_journal> journal;
  std::shared_ptr<metrics::journal_probe> probe;
  std::function<void(const std::string&)> warn;
  decltype(start_journal::tier) tier;
  runtime::operation_id under_way{};
  disk_actor disk;
  std::chrono::milliseconds stall_after{};
  stall_detector watch{ticks_of_patience}; ///< watches the operation in progress
  bool ticking = false;                    ///< a tick of the detector is in the ring
  std::shared_ptr<disk_service> service;
  size_t path = 0;
  std::vector<answer<close_journal_answer>> closers;
};

using journal_pointer = caf::stateful_actor<journal_state, runtime::homed<journal_actor::base>>*;

void pump(journal_pointer self);

void ask_for_image(journal_pointer self) {
  auto wanted = self->state.journal->image_wanted();
  if (!wanted)
    return;
  self->request(self->state.tier, caf::infinite, *wanted)
      .then(
          [self](const image_answer& part) {
            self->state.journal->add(part);
            pump(self);
          },
          [](const caf::error&) {}); // the tier has ended, and with it the index
}

void keep_watch(journal_pointer self) {
  auto& state = self->state;
  keep_ticking(self, state.watch, state.ticking, state.stall_after, watch_tag);
}

void submit(journal_pointer self, journal_io io) {
  auto& state = self->state;
  runtime::io_request request;
  request.fd = state.file->fd();
  if (io.wanted == journal_io::action::sync) {
    request.code = runtime::io_code::fsync;
  } else {
    request.code = runtime::io_code::write;
    request.offset = io.file_offset;
    request.data = const_cast<std::byte*>(io.memory->data()); // a write only reads the memory
    request.length = static_cast<uint32_t>(io.memory->size());
    request.keep_alive = std::const_pointer_cast<aligned_buffer>(std::move(io.memory));
  }
  state.under_way =
      self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), io_tag);
  state.watch.started(io_tag, 0);
  keep_watch(self);
}

/// Stops waiting for the operation. Its effect still counts when it completes.
void on_tick(journal_pointer self) {
  auto& state = self->state;
  assert(state.ticking);
  state.ticking = false;
  if (!state.watch.tick().empty()) {
    self->port().cancel(state.under_way); // if the kernel can
    self->send(state.disk, journal_stalled{true});
    state.journal->give_up_forgets();
  }
  keep_watch(self);
}

void on_completed(journal_pointer self, int32_t result) {
  auto& state = self->state;
  if (state.watch.ended(io_tag))
    self->send(state.disk, journal_stalled{false});
  if (auto report = state.journal->completed(result); !report.empty())
    state.warn(report);
  pump(self);
}

void tell_room(journal_pointer self) {
  auto& state = self->state;
  auto report = state.journal->room();
  if (!report)
    return;
  if (state.service)
    state.service->set_notice(state.path, disk_service::about::room, report->notice);
  if (report->news)
    state.warn(report->notice);
}

void pump(journal_pointer self) {
  auto& state = self->state;
  path_journal& journal = *state.journal;
  journal.advance();
  ask_for_image(self);
  if (auto io = journal.next())
    submit(self, std::move(*io));
  tell_room(self);
  const journal_counts& counts = journal.counts();
  state.probe->now({counts.records, counts.blocks, counts.lost, counts.checkpoints, counts.failures,
                    counts.unrecorded, journal.fill()});
  if (journal.closed())
    for (auto& waiting : std::exchange(state.closers, {}))
      waiting.deliver({journal.missing()});
}

void on_changes(journal_pointer self, const index_changes& changes) {
  self->state.journal->add(changes);
  pump(self);
}

caf::result<forget_answer> on_forget(journal_pointer self, const forget_request& request) {
  auto& state = self->state;
  auto reply = make_answer<forget_answer>(self);
  state.journal->forget(request, [reply](forget_answer done) mutable { reply.deliver(std::move(done)); });
  if (state.watch.stalled(0) != 0)
    state.journal->give_up_forgets();
  pump(self);
  return reply.promise();
}

caf::result<close_journal_answer> on_close(journal_pointer self) {
  auto reply = make_answer<close_journal_answer>(self);
  self->state.closers.push_back(reply);
  self->state.journal->close();
  pump(self);
  return reply.promise();
}

journal_actor::behavior_type journal_behavior(journal_pointer self,
                                              const std::shared_ptr<journal_arguments>& arguments) {
  auto& state = self->state;
  state.file = std::move(arguments->file);
  state.disk = arguments->disk;
  state.stall_after = arguments->stall_after;
  state.journal.emplace(state.file->block(),
                        path_journal::options{state.file->path(), arguments->in_arena, arguments->position,
                                              std::move(arguments->spaces)});
  state.probe = std::move(arguments->probe);
  state.service = std::move(arguments->service);
  state.path = arguments->path;
  state.warn = std::move(arguments->warn);
  return {
      [self](const start_journal& start) {
        self->state.tier = start.tier;
        if (!start.recorded.empty())
          self->state.journal->has_recorded(start.recorded.front());
      },
      [self](const check_journal_request& request) {
        check_answer_texts answer;
        if (!request.paths.empty())
          answer.differences = self->state.journal->check(request.paths.front());
        return answer;
      },
      [self](const index_changes& changes) { on_changes(self, changes); },
      [self](const forget_request& request) { return on_forget(self, request); },
      [self](const close_journal_request&) { return on_close(self); },
      [self](const runtime::io_done& done) {
        if (done.tag == io_tag)
          on_completed(self, done.result);
        else if (done.result == -ETIME)
          on_tick(self);
      },
  };
}

} // namespace

journal_actor spawn_journal(caf::actor_system& system, const runtime::home& home,
                            journal_arguments arguments) {
  return runtime::spawn_homed(system, home, journal_behavior,
                              std::make_shared<journal_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
