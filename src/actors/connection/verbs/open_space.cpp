// open_space: declares the client's KV, so that only interchangeable KV is shared.
#include "actors/connection/verbs.hpp"
#include "group/idle_space_search.hpp"
#include "connection/open_pools.hpp"
#include "connection/request_values.hpp"
#include "actors/resp/value_space.hpp"

namespace terrace::actors::verbs {

namespace {

// ---- making room for another space ----

/// If the trust group has too many spaces, idle ones without objects are forgotten, and the space is opened again; `busy`
/// once all idle ones have objects.
struct opening {
  connection& client;
  connection::request what;
  space_spec spec;
  std::function<void(const space_ptr&)> then;
  error full{}; ///< the first answer
  idle_space_search idle{};
};
using opening_ptr = std::shared_ptr<opening>;

void try_to_open(const opening_ptr& all);

void forget_empty(const opening_ptr& all) {
  all->client.ask(all->what, all->client.group().group, forget_spaces_request{all->idle.empty()},
                  "the trust group's actor has ended",
                  [all](const forget_spaces_answer&) { try_to_open(all); });
}

void make_room(const opening_ptr& all);

void ask_next_tier(const opening_ptr& all) {
  const auto& tiers = all->client.group().tiers();
  if (auto next = all->idle.next_tier(tiers.size()))
    all->client.ask(all->what, tiers[*next].tier, all->idle.question(), "a tier has ended",
                    [all](const empty_spaces_answer& answer) {
                      all->idle.take(answer);
                      ask_next_tier(all);
                    });
  else if (all->idle.empty().empty())
    make_room(all);
  else
    forget_empty(all);
}

void make_room(const opening_ptr& all) {
  const request_context& context = *all->what.context;
  if (all->idle.looked_at_all() || !context.live()) {
    all->client.refuse(all->what, context.live() ? all->full : error{context.ended.load(), all->full.text});
    return;
  }
  if (all->client.group().will_join()) { // its objects' spaces have numbers before the tier joins
    all->client.refuse(all->what, all->full);
    return;
  }
  all->client.ask(all->what, all->client.group().group, idle_spaces_request{},
                  "the trust group's actor has ended", [all](const idle_spaces_answer& answer) {
                    if (all->idle.take(answer))
                      ask_next_tier(all);
                    else
                      all->client.refuse(all->what, all->full);
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
  if (!client.ok(what, spec))
    return;
  if (resp::is_value_space(*spec)) {
    client.refuse(what, {errc::denied, "layout is '" + spec->layout +
                                           "', which is kept for values of Redis clients, whose "
                                           "sizes differ: expected another layout"});
    return;
  }
  auto rank = static_cast<uint16_t>(asked.rank());
  auto then = [&client, what, rank, defaults = defaults_of(asked)](const space_ptr& opened) {
    const opened_space& space = *opened;
    auto mine = std::make_shared<client_space>();
    mine->what = opened;
    mine->hasher = make_token_hasher(space.spec);
    mine->rank = rank;
    mine->defaults = defaults;
    mine->probe = client.environment().spaces->probe(client.group().name, space.spec.model);
    if (!client.ok(what, client.holdings().add(std::move(mine))))
      return;
    client.reply(what,
                 [&](flatbuffers::FlatBufferBuilder& body) { return write_open_space_answer(body, space); });
  };
  try_to_open(std::make_shared<opening>(opening{client, what, std::move(*spec), then}));
}

} // namespace terrace::actors::verbs
