// clear: forgets the objects of a space, or all of the trust group, for good.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

/// The tiers are asked one after the other: from the fastest down, and the fastest once more. A transfer reserves its
/// destination first and then asks its source whether the bytes still count (`confirm_request`), and a clear takes what
/// is reserved as well; so whatever is under way meanwhile, nothing that was cleared comes back.
struct clearing {
  connection& client;
  connection::request what;
  std::optional<space_id> space;
  std::vector<tier_actor> order;
  size_t next = 0;
  clear_answer sum;
};

void go_on(const std::shared_ptr<clearing>& all) {
  connection& client = all->client;
  if (all->next == all->order.size()) {
    if (all->sum.failure.code != errc::ok) {
      client.refuse(all->what, all->sum.failure);
      return;
    }
    if (client.group().shadow)
      client.send(client.group().shadow, shadow_clear{all->space});
    client.reply(all->what, [&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreateClearAnswer(body, all->sum.objects, all->sum.bytes);
    });
    return;
  }
  client.ask(
      all->order[all->next++], clear_request{all->space},
      [all](const clear_answer& answer) {
        all->sum.objects += answer.objects;
        all->sum.bytes += answer.bytes;
        if (answer.failure.code != errc::ok)
          all->sum.failure = answer.failure;
        go_on(all);
      },
      [all] {
        all->client.refuse(all->what, {errc::internal, "a tier has ended while it was cleared"});
      });
}

} // namespace

void clear(connection& client, const connection::request& what, const wire::Clear& asked,
           protocol::descriptor_list&) {
  auto all = std::make_shared<clearing>(clearing{client, what, std::nullopt, {}, 0, {}});
  if (asked.space() != 0) {
    auto space = client.find_space(what, asked.space());
    if (!space)
      return;
    all->space = space->what->id;
  }
  all->order.push_back(client.group().host);
  if (const disk_parts* disk = client.group().disk()) {
    all->order.push_back(disk->tier);
    all->order.push_back(client.group().host);
  } else if (client.group().phase() == group_parts::disk_phase::starting ||
             client.group().phase() == group_parts::disk_phase::locked) {
    client.refuse(what, {errc::busy,
                         "the disk tier is still starting: what it holds cannot be cleared yet; try again"});
    return;
  }
  go_on(all);
}

} // namespace terrace::actors::verbs
