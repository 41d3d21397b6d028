// open_space: declares the client's KV, so that only interchangeable KV is shared.
#include "actors/connection/verbs.hpp"
#include "connection/open_pools.hpp"
#include "connection/request_values.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

// ---- making room for another space ----

/// The trust group has too many spaces. It names idle ones, a part at a time; those of which no tier has an object are
/// forgotten, and the space is opened again. `busy` once all idle ones have objects.
struct opening {
  connection& client;
  connection::request what;
  space_spec spec;
  std::function<void(const space_ptr&)> then;
  error full;        ///< the first answer
  size_t looked = 0; ///< at idle spaces
  std::vector<idle_space> empty;
  size_t next_tier = 0;
};
using opening_ptr = std::shared_ptr<opening>;

void try_to_open(const opening_ptr& all);

void forget_empty(const opening_ptr& all) {
  all->client.ask(all->what, all->client.group().group, forget_spaces_request{all->empty},
                  "the trust group's actor has ended", [all](const forget_spaces_answer& answer) {
                    for (const tier_parts& tier : all->client.group().tiers())
                      all->client.send(tier.tier, forget_spaces_notice{answer.forgotten});
                    try_to_open(all);
                  });
}

void make_room(const opening_ptr& all);

/// Tiers are asked in order, fastest first: an object that leaves one for a tier below is there before.
void ask_next_tier(const opening_ptr& all) {
  const auto& tiers = all->client.group().tiers();
  if (all->empty.empty()) {
    make_room(all);
    return;
  }
  if (all->next_tier == tiers.size()) {
    forget_empty(all);
    return;
  }
  empty_spaces_request request;
  for (const idle_space& one : all->empty)
    request.of.push_back(one.id);
  all->client.ask(all->what, tiers[all->next_tier++].tier, std::move(request), "a tier has ended",
                  [all](const empty_spaces_answer& answer) {
                    std::erase_if(all->empty, [&](const idle_space& one) {
                      return !std::binary_search(answer.empty.begin(), answer.empty.end(), one.id);
                    });
                    ask_next_tier(all);
                  });
}

void make_room(const opening_ptr& all) {
  using phase = group_parts::disk_phase;
  phase now = all->client.group().phase();
  if (now == phase::starting ||
      now == phase::locked) { // its objects' spaces have numbers before the tier joins
    all->client.refuse(all->what, all->full);
    return;
  }
  all->client.ask(all->what, all->client.group().group, idle_spaces_request{},
                  "the trust group's actor has ended", [all](const idle_spaces_answer& answer) {
                    if (answer.idle.empty() || all->looked >= answer.known) {
                      all->client.refuse(all->what, all->full);
                      return;
                    }
                    all->looked += answer.idle.size();
                    all->empty = answer.idle;
                    std::sort(all->empty.begin(), all->empty.end(),
                              [](const idle_space& a, const idle_space& b) { return a.id < b.id; });
                    all->next_tier = 0;
                    ask_next_tier(all);
                  });
}

void try_to_open(const opening_ptr& all) {
  all->client.ask(all->what, all->client.group().group, open_space_request{all->spec},
                  "the trust group's actor has ended", [all](const open_space_answer& answer) {
                    if (answer.failure.code == errc::busy) {
                      all->full = answer.failure;
                      make_room(all);
                    } else if (answer.failure.code != errc::ok) {
                      all->client.refuse(all->what, answer.failure);
                    } else {
                      all->then(answer.opened);
                    }
                  });
}

} // namespace

void open_space(connection& client, const connection::request& what, const wire::OpenSpace& asked,
                protocol::descriptor_list&) {
  auto spec = spec_of(asked);
  if (!spec) {
    client.refuse(what, spec.error());
    return;
  }
  auto rank = static_cast<uint16_t>(asked.rank());
  auto then = [&client, what, rank](const space_ptr& opened) {
    const opened_space& space = *opened;
    auto mine = std::make_shared<client_space>();
    mine->what = opened;
    mine->hasher = make_token_hasher(space.spec);
    mine->rank = rank;
    mine->presence = std::make_unique<rank_presence::member>(space.ranks, rank);
    mine->probe = client.environment().spaces->probe(client.group().name, space.spec.model);
    if (!client.opened(what, std::move(mine)))
      return;
    client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
      auto fingerprint = body.CreateVector(space.fingerprint.bytes.data(), space.fingerprint.bytes.size());
      auto pools = write_open_pools(body, space.spec);
      return wire::CreateOpenSpaceAnswer(body, static_cast<uint32_t>(space.id), fingerprint, pools);
    });
  };
  try_to_open(std::make_shared<opening>(opening{client, what, std::move(*spec), then, {}, 0, {}, 0}));
}

} // namespace terrace::actors::verbs
