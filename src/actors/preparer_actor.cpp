#include "actors/preparer_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <filesystem>

namespace terrace::actors {

namespace {
struct prepare_disk {};
struct commit_piece {};
} // namespace

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::prepare_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::commit_piece)

namespace terrace::actors {

namespace {

struct preparer_state {
  const char* name = "preparer";
  preparer_arguments with;
};

using self_pointer = caf::stateful_actor<preparer_state>*;

void open_disk(self_pointer self) {
  auto& with = self->state.with;
  disk_prepared report;
  report.group = with.group;
  std::error_code ignored; // opening the file reports what matters
  std::filesystem::create_directories(std::filesystem::path(with.disk->path).parent_path(), ignored);
  auto file = extent_file::open(*with.disk);
  if (file)
    report.file = std::make_shared<const extent_file>(std::move(*file));
  else
    report.failure = file.error();
  self->send(with.report_to, std::move(report));
}

/// One piece a message, so that an exit message gets through between two of them.
void commit(self_pointer self) {
  auto& with = self->state.with;
  auto done = with.memory->prefault(with.prefault_piece_bytes);
  if (done && !*done) {
    self->send(self, commit_piece{});
    return;
  }
  self->send(with.report_to, memory_prepared{with.group, done ? error{} : done.error()});
  self->quit();
}

caf::behavior preparer_behavior(self_pointer self, const std::shared_ptr<preparer_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  if (self->state.with.disk)
    self->send(self, prepare_disk{});
  self->send(self, commit_piece{});
  return {
      [self](prepare_disk) { open_disk(self); },
      [self](commit_piece) {
        if (self->state.with.prefault_piece_bytes == 0)
          self->quit();
        else
          commit(self);
      },
  };
}

} // namespace

caf::actor spawn_preparer(caf::actor_system& system, preparer_arguments arguments) {
  return system.spawn<caf::detached>(preparer_behavior,
                                     std::make_shared<preparer_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
