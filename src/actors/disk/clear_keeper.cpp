#include "actors/disk/clear_keeper.hpp"

#include "storage/pending_clears.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <filesystem>

namespace terrace::actors {

namespace {

using phase = group_parts::disk_phase;

/// A volume that is configured but turned off may be turned on again; without a file there is nothing to
/// forget.
std::vector<std::string> files_of(const group_parts& group) {
  std::vector<std::string> files = group.disk_files;
  std::error_code failed;
  if (group.phase() == phase::off)
    std::erase_if(files,
                  [&](const std::string& file) { return !std::filesystem::exists(file, failed) && !failed; });
  return files;
}

/// A clear of one known volume only waits for its next opening. A clear of whatever the files contain is
/// useless once they are being opened.
bool still_needed(const group_parts& group, const pending_clear& clear) {
  return clear.volume != volume_id{} || (group.phase() != phase::starting && group.phase() != phase::ready);
}

error remember(const group_parts& group, const pending_clear& clear) {
  std::vector<std::string> files = files_of(group);
  auto done = pending_clears(group.state_directory).remember(files, clear, [&] {
    return still_needed(group, clear);
  });
  if (done)
    return {};
  if (done.error().code == errc::busy)
    return {errc::busy, files.front() + " is being opened and cannot be cleared yet; try again"};
  return {errc::internal, "host memory is cleared, but " + files.front() +
                              " could not be reached, and the clear could not be recorded for it (" +
                              done.error().text +
                              "): cleared objects may be served again once the file can be opened"};
}

clear_keeper_actor::behavior_type keeper_behavior(clear_keeper_actor::pointer self, const group_ptr& group) {
  return {
      [self, group](const remember_clear_request& request) {
        remember_clear_answer answer{remember(*group, request.what)};
        self->quit();
        return answer;
      },
  };
}

} // namespace

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group) {
  return group->detached ? system.spawn<caf::detached>(keeper_behavior, group)
                         : system.spawn(keeper_behavior, group);
}

} // namespace terrace::actors
