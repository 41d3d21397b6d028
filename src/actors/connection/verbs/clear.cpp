// clear: removes the objects of a space, or all of the trust group, permanently.
#include "actors/connection/verbs.hpp"
#include "actors/disk/clear_keeper.hpp"
#include "tier/objects/clear_course.hpp"

namespace terrace::actors::verbs {

namespace {

/// 1. If the volume cannot be reached, the clear is recorded in the state directory: the volume applies it before it
///    serves again.
/// 2. The tiers are asked, in the order of tier/objects/clear_course.hpp.
/// 3. If an open volume could not make the clear durable on all of its paths, it is recorded for the other paths.
struct clearing {
  connection& client;
  connection::request what;
  std::optional<space_id> space;
  std::optional<space_fingerprint> fingerprint;
  clear_course course;
};
using clearing_ptr = std::shared_ptr<clearing>;

void remember(const clearing_ptr& all, const pending_clear& what, std::function<void(const error&)> then) {
  connection& client = all->client;
  client.ask(spawn_clear_keeper(client.system(), client.group_handle()), remember_clear_request{what},
             client.guarded(all->what, [then](const remember_clear_answer& answer) { then(answer.failure); }),
             [then] {
               then({errc::internal, "the clear could not be recorded for the disk tier"});
             });
}

void finish(const clearing_ptr& all) {
  connection& client = all->client;
  const clear_answer& sum = all->course.sum();
  if (sum.failure.code != errc::ok) {
    client.refuse(all->what, sum.failure);
    return;
  }
  if (client.group().shadow)
    client.send(client.group().shadow, shadow_clear{all->space});
  client.reply(all->what, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateClearAnswer(body, sum.objects, sum.bytes);
  });
}

/// Paths of the volume that are left out, or could not write the clear down, hear of it when they are opened.
void finish_volume(const clearing_ptr& all) {
  auto missed = all->course.unrecorded(all->fingerprint);
  if (!missed) {
    finish(all);
    return;
  }
  remember(all, *missed, [all](const error& failure) {
    all->course.recorded(failure);
    finish(all);
  });
}

void ask_tiers(const clearing_ptr& all) {
  connection& client = all->client;
  const auto& tiers = client.group().tiers();
  auto next = all->course.next(tiers.size());
  if (!next) {
    finish_volume(all);
    return;
  }
  client.ask(tiers[*next].tier, clear_request{all->space, all->fingerprint},
             client.guarded(all->what,
                            [all](const clear_answer& answer) {
                              all->course.add(answer);
                              ask_tiers(all);
                            }),
             [all] {
               all->client.refuse(all->what, {errc::internal, "a tier ended while it was cleared"});
             });
}

void clear_tiers(const clearing_ptr& all) {
  if (all->client.group().disk() != nullptr) {
    ask_tiers(all);
    return;
  }
  remember(all, {all->fingerprint}, [all](const error& failure) {
    if (failure.code == errc::busy) {
      all->client.refuse(all->what, failure);
      return;
    }
    all->course.recorded(failure);
    ask_tiers(all);
  });
}

} // namespace

void clear(connection& client, const connection::request& what, const wire::Clear& asked,
           protocol::descriptor_list&) {
  if (!client.may_govern(what, "a clear removes what all clients of the trust group have stored"))
    return;
  auto all = std::make_shared<clearing>(clearing{client, what, {}, {}, {}});
  if (asked.space() != 0) {
    auto space = client.find_space(what, asked.space());
    if (!space)
      return;
    all->space = space->what->id;
    all->fingerprint = space->what->fingerprint.bytes;
  }
  client.ask(what, client.group().group, forget_prompts_request{all->space.value_or(space_id{})},
             "the trust group's actor has ended", [all](const forget_prompts_answer&) { clear_tiers(all); });
}

} // namespace terrace::actors::verbs
