#include "actors/disk/journal_actor.hpp"

#include "actors/disk/disk_actor.hpp"
#include "actors/disk/stall_tick.hpp"
#include "coroutine/answer.hpp"
#include "runtime/io_messages.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <cstring>

namespace terrace::actors {

namespace {

constexpr uint64_t io_tag = 0;
constexpr uint64_t tick_tag = 1;

constexpr uint32_t image_slots = 1024; ///< requested from the tier at a time, so that others have their turn

struct journal_state {
  const char* name = "journal";
  std::shared_ptr<const extent_file> file;
  extent in_arena;
  std::optional<index_journal> journal;
  volume_spaces spaces;
  std::shared_ptr<metrics::journal_probe> probe;
  std::function<void(const std::string&)> warn;
  decltype(start_journal::tier) tier;

  uint64_t expected_bytes = 0; ///< of the operation in progress
  runtime::operation_id under_way{};
  disk_actor disk;
  std::chrono::milliseconds stall_after{};
  stall_detector watch{ticks_of_patience}; ///< of that operation, tag 0
  bool ticking = false;                    ///< a tick of it is in the ring
  bool failing = false;
  uint32_t next_slot = 0;
  bool asking = false; ///< a part of the image was requested
  bool closing = false;
  bool final_begun = false; ///< the final checkpoint
  std::vector<answer<close_journal_answer>> closers;
};

using self_pointer = caf::stateful_actor<journal_state, runtime::homed<journal_actor::base>>*;

void pump(self_pointer self);

/// Fills in the volume's number of the space and the offset on the path. Objects of a space without a number
/// are omitted: none of them was ever published.
std::vector<index_record> numbered(const journal_state& state, const std::vector<index_change>& changes) {
  std::vector<index_record> records;
  records.reserve(changes.size());
  for (const index_change& change : changes) {
    uint32_t number = state.spaces.number_of(change.in);
    if (number == 0)
      continue;
    records.push_back(change.record);
    records.back().space = number;
    records.back().offset -= state.in_arena.offset;
  }
  return records;
}

void take(self_pointer self, const index_changes& what) {
  auto& state = self->state;
  if (what.of && state.spaces.number_of(what.of->id) == 0) {
    uint32_t number = state.spaces.define(what.of->id, what.of->fingerprint.bytes);
    state.journal->add(space_record(number, what.of->fingerprint.bytes));
  }
  for (const index_record& record : numbered(state, what.changes))
    state.journal->add(record);
  pump(self);
}

void ask_for_image(self_pointer self) {
  auto& state = self->state;
  if (state.asking || !state.journal->wants_image())
    return;
  state.asking = true;
  self->request(state.tier, caf::infinite, image_request{state.in_arena, state.next_slot, image_slots})
      .then(
          [self](const image_answer& part) {
            auto& now = self->state;
            now.asking = false;
            now.next_slot = part.next;
            now.journal->add_image(numbered(now, part.objects));
            if (part.last)
              now.journal->end_image();
            pump(self);
          },
          [](const caf::error&) {}); // the tier has ended, and with it the index
}

void keep_watch(self_pointer self) {
  auto& state = self->state;
  keep_ticking(self, state.watch, state.ticking, state.stall_after, tick_tag);
}

void submit(self_pointer self, journal_io io) {
  auto& state = self->state;
  runtime::io_request request;
  request.fd = state.file->fd();
  if (io.what == journal_io::action::sync) {
    request.code = runtime::io_code::fsync;
    state.expected_bytes = 0;
  } else {
    request.code = runtime::io_code::write;
    request.offset = io.file_offset;
    request.data = const_cast<std::byte*>(io.memory->data()); // a write only reads it
    request.length = static_cast<uint32_t>(io.memory->size());
    state.expected_bytes = io.memory->size();
    request.keep_alive = std::const_pointer_cast<aligned_buffer>(std::move(io.memory));
  }
  state.under_way =
      self->port().submit(std::move(request), caf::actor_cast<caf::strong_actor_ptr>(self), io_tag);
  state.watch.started(io_tag, 0);
  keep_watch(self);
}

/// The operation is no longer waited for, but its effect counts when it completes.
void tick(self_pointer self) {
  auto& state = self->state;
  state.ticking = false;
  if (!state.watch.tick().empty()) {
    self->port().cancel(state.under_way); // if the kernel can
    self->send(state.disk, journal_stalled{true});
    state.journal->give_up_forgets();
  }
  keep_watch(self);
}

void completed(self_pointer self, int32_t result) {
  auto& state = self->state;
  if (state.watch.ended(io_tag))
    self->send(state.disk, journal_stalled{false});
  bool good = result >= 0 && static_cast<uint64_t>(result) == state.expected_bytes;
  if (good != state.failing) {
    // as before
  } else if (state.failing) {
    state.failing = false;
    state.warn("the index of " + state.file->path() + " can be written again");
  } else {
    state.failing = true;
    state.warn("the index of " + state.file->path() +
               " cannot be written: " + (result < 0 ? std::strerror(-result) : "short write") +
               "; objects stored now may be missing after a restart");
  }
  state.journal->completed(good);
  pump(self);
}

void close_if_done(self_pointer self) {
  auto& state = self->state;
  if (state.closers.empty() || !state.journal->idle())
    return;
  close_journal_answer answer;
  if (state.journal->changed())
    answer.failure = {errc::internal,
                      "the last checkpoint of " + state.file->path() + " could not be written"};
  for (auto& waiting : std::exchange(state.closers, {}))
    waiting.deliver(answer);
}

void pump(self_pointer self) {
  auto& state = self->state;
  index_journal& journal = *state.journal;
  bool final_due =
      state.closing && !state.final_begun && journal.changed() && !journal.checkpoint_in_progress();
  if (journal.checkpoint_due() || final_due) {
    state.final_begun = state.closing;
    journal.begin_checkpoint();
    journal.add_image(state.spaces.records());
    state.next_slot = 0;
  }
  ask_for_image(self);
  if (auto io = journal.next())
    submit(self, std::move(*io));
  const journal_counts& counts = journal.counts();
  state.probe->now({counts.records, counts.blocks, counts.lost, counts.checkpoints, counts.failures,
                    counts.unrecorded, journal.fill()});
  close_if_done(self);
}

caf::result<forget_answer> forget(self_pointer self, const forget_request& request) {
  auto& state = self->state;
  std::optional<space_fingerprint> fingerprint;
  if (request.space) {
    fingerprint = state.spaces.fingerprint_of(*request.space);
    if (!fingerprint) // none of it was ever written
      return forget_answer{{}, state.journal->block().epoch, {}};
  }
  auto reply = make_answer<forget_answer>(self);
  state.journal->forget(fingerprint, request.epoch, [self, reply](bool durable) mutable {
    forget_answer answer;
    answer.epoch = self->state.journal->block().epoch;
    if (!durable)
      answer.failure = {errc::internal,
                        "cleared, but " + self->state.file->path() +
                            " could not record it: after a restart cleared objects may reappear"};
    reply.deliver(std::move(answer));
  });
  if (state.watch.stalled(0) != 0)
    state.journal->give_up_forgets();
  pump(self);
  return reply.promise();
}

caf::result<close_journal_answer> close(self_pointer self) {
  auto reply = make_answer<close_journal_answer>(self);
  self->state.closers.push_back(reply);
  self->state.closing = true;
  pump(self);
  return reply.promise();
}

journal_actor::behavior_type journal_behavior(self_pointer self,
                                              const std::shared_ptr<journal_arguments>& arguments) {
  auto& state = self->state;
  state.file = std::move(arguments->file);
  state.in_arena = arguments->in_arena;
  state.disk = arguments->disk;
  state.stall_after = arguments->stall_after;
  state.journal.emplace(state.file->block(), arguments->position);
  state.spaces = std::move(arguments->spaces);
  state.probe = std::move(arguments->probe);
  state.warn = std::move(arguments->warn);
  return {
      [self](const start_journal& start) { self->state.tier = start.tier; },
      [self](const index_changes& what) { take(self, what); },
      [self](const forget_request& request) { return forget(self, request); },
      [self](const close_journal_request&) { return close(self); },
      [self](const runtime::io_done& done) {
        if (done.tag == io_tag)
          completed(self, done.result);
        else if (done.result == -ETIME)
          tick(self);
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
