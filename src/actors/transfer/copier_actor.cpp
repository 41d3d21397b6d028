#include "actors/transfer/copier_actor.hpp"

#include "transfer/copy_ops.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>

namespace terrace::actors {

namespace {

/// Measures the time and the bytes of a job.
template <class F>
auto counted(const std::shared_ptr<metrics::copier_probe>& probe, uint64_t bytes, F job) {
  auto begin = std::chrono::steady_clock::now();
  probe->queued(bytes);
  auto answer = job();
  uint64_t moved = bytes;
  if constexpr (requires { answer.bytes; })
    moved = answer.bytes;
  probe->finished(bytes, moved, answer.failure.code == errc::gone, std::chrono::steady_clock::now() - begin);
  return answer;
}

uint64_t bytes_of(const std::vector<sealed_object>& objects) {
  uint64_t bytes = 0;
  for (const sealed_object& object : objects)
    bytes += object.payload_bytes;
  return bytes;
}

copier_actor::behavior_type copier_behavior(copier_actor::pointer, const copier_arguments& with) {
  return {
      [with](const copy_request& request) {
        uint64_t bytes = 0;
        for (const copy_piece& piece : request.pieces)
          bytes += piece.bytes;
        return counted(with.probe, bytes, [&] { return move_bytes(request, with.piece_bytes); });
      },
      [with](const seal_request& request) {
        return counted(with.probe, bytes_of(request.objects), [&] {
          seal_objects(request);
          return seal_answer{};
        });
      },
      [with](const check_request& request) {
        return counted(with.probe, bytes_of(request.objects), [&] {
          return check_answer{{}, check_objects(request)};
        });
      },
  };
}

} // namespace

copier_actor spawn_copier(caf::actor_system& system, copier_arguments arguments) {
  if (!arguments.probe)
    arguments.probe = std::make_shared<metrics::copier_probe>();
  if (arguments.detached)
    return system.spawn<caf::detached>(copier_behavior, arguments);
  return system.spawn(copier_behavior, arguments);
}

} // namespace terrace::actors
