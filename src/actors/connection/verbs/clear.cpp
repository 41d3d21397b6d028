// clear: removes the objects of a space, or all of the trust group, permanently.
#include "actors/connection/verbs.hpp"
#include "actors/disk/clear_keeper.hpp"
#include "tier/objects/clear_course.hpp"

namespace terrace::actors::verbs {

namespace {

/// Writes the clear to the state directory, for what the volume or a path of it cannot record now.
task<error> record(client_request& request, pending_clear what) {
  connected_client& client = request.client;
  auto keeper = spawn_clear_keeper(request.actor.system(), client.group_handle());
  remember_clear_request question{std::move(what)};
  auto recorded = co_await request.try_ask<remember_clear_answer>(
      keeper, std::move(question), "the clear could not be recorded for the disk tier");
  co_return recorded ? recorded->failure : recorded.error();
}

} // namespace

/// 1. If the volume cannot be reached, the clear is recorded in the state directory: the volume applies it before it
///    serves again.
/// 2. The tiers are asked, in the order of tier/objects/clear_course.hpp.
/// 3. If an open volume could not make the clear durable on all of its paths, it is recorded for the other paths.
task<> clear(client_request& request, const wire::Clear& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  if (!request.may_govern("a clear removes what all clients of the trust group have stored"))
    co_return;
  std::optional<space_id> space;
  std::optional<space_fingerprint> fingerprint;
  if (asked.space() != 0) {
    auto opened = request.space(asked.space());
    if (!opened)
      co_return;
    space = opened->what->id;
    fingerprint = opened->what->fingerprint.bytes;
  }
  const group_parts& group = client.group();
  forget_prompts_request prompts{space.value_or(space_id{})};
  co_await request.ask<forget_prompts_answer>(group.group, std::move(prompts), group_ended);
  clear_course course;
  if (group.disk() == nullptr) {
    pending_clear pending{fingerprint};
    auto failure = co_await record(request, std::move(pending));
    if (failure.code == errc::busy) {
      co_await request.valid(failure);
    }
    course.recorded(failure);
  }
  while (auto next = course.next(group.tiers().size())) {
    tier_actor tier = group.tiers()[*next].tier;
    clear_request question{space, fingerprint};
    auto cleared =
        co_await request.ask<clear_answer>(tier, std::move(question), "a tier ended while it was cleared");
    course.add(cleared);
  }
  // Paths of the volume that are left out, or could not write the clear down, hear of it when they are opened.
  if (auto missed = course.unrecorded(fingerprint)) {
    pending_clear pending = *missed;
    auto failure = co_await record(request, std::move(pending));
    course.recorded(failure);
  }
  const clear_answer& sum = course.sum();
  co_await request.valid(sum.failure);
  if (group.shadow)
    request.actor.send(group.shadow, shadow_clear{space});
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateClearAnswer(body, sum.objects, sum.bytes);
  });
}

} // namespace terrace::actors::verbs
