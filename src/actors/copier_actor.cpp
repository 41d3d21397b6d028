#include "actors/copier_actor.hpp"

#include "actors/byte_moves.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

copier_actor::behavior_type copier_behavior(copier_actor::pointer, uint64_t piece_bytes) {
  return {
      [piece_bytes](const copy_request& request) { return move_bytes(request, piece_bytes); },
      [](const seal_request& request) {
        seal_objects(request);
        return seal_answer{};
      },
      [](const check_request& request) {
        return check_answer{{}, check_objects(request)};
      },
  };
}

} // namespace

copier_actor spawn_copier(caf::actor_system& system, copier_arguments arguments) {
  if (arguments.detached)
    return system.spawn<caf::detached>(copier_behavior, arguments.piece_bytes);
  return system.spawn(copier_behavior, arguments.piece_bytes);
}

} // namespace terrace::actors
