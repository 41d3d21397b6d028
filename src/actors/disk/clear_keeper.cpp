#include "actors/disk/clear_keeper.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>

namespace terrace::actors {

namespace {

clear_keeper_actor::behavior_type keeper_behavior(clear_keeper_actor::pointer self, const group_ptr& group) {
  return {
      [self, group, asked = false](const remember_clear_request& request) mutable {
        assert(!asked); // there is one keeper per clear
        asked = true;
        self->quit();
        return remember_clear(group->state_directory, group->disk_files, request.what,
                              [&group] { return group->phase(); });
      },
  };
}

} // namespace

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group) {
  return group->detached ? system.spawn<caf::detached>(keeper_behavior, group)
                         : system.spawn(keeper_behavior, group);
}

} // namespace terrace::actors
