// open_space: declares the client's KV, so that only interchangeable KV is shared.
#include "actors/connection/verbs.hpp"
#include "actors/resp/value_transfer.hpp"
#include "connection/request_values.hpp"
#include "connection/status_tables.hpp"
#include "group/idle_space_search.hpp"

namespace terrace::actors::verbs {

namespace {

/// The space, once the trust group has a number for it. If it has too many, idle ones without objects are forgotten; `busy`
/// if all idle ones have objects.
task<space_ptr> opened(client_request& request, const space_spec& spec) {
  const trust_group& group = request.client.group();
  idle_space_search idle;
  error full; // the first answer
  while (true) {
    open_space_request opening{spec};
    auto answer = co_await request.ask<open_space_answer>(group.group, std::move(opening), group_ended);
    if (answer.failure.code == errc::ok)
      co_return std::move(answer.opened);
    if (answer.failure.code != errc::busy) {
      co_await request.valid(answer.failure);
    }
    full = answer.failure;
    do {
      if (!request.context->live())
        full.code = request.context->ended.load();
      // Before a tier joins, the spaces of its objects have numbers.
      if (idle.looked_at_all() || !request.context->live() || group.will_join()) {
        co_await request.valid(full);
      }
      idle_spaces_request some;
      auto spaces = co_await request.ask<idle_spaces_answer>(group.group, std::move(some), group_ended);
      if (!idle.apply(spaces)) {
        co_await request.valid(full);
      }
      while (auto next = idle.next_tier(group.tiers().size())) {
        tier_actor tier = group.tiers()[*next].tier;
        auto question = idle.question();
        auto empty = co_await request.ask<empty_spaces_answer>(tier, std::move(question), "a tier has ended");
        idle.apply(empty);
      }
    } while (idle.empty().empty());
    forget_spaces_request forget{idle.empty()};
    co_await request.ask<forget_spaces_answer>(group.group, std::move(forget), group_ended);
  }
}

/// The space with this number.
task<space_ptr> known(client_request& request, uint32_t number) {
  const trust_group& group = request.client.group();
  open_space_request opening{{}, static_cast<space_id>(number)};
  auto answer = co_await request.ask<open_space_answer>(group.group, std::move(opening), group_ended);
  co_await request.valid(answer.failure);
  co_return std::move(answer.opened);
}

task<space_ptr> described(client_request& request, const wire::OpenSpace& asked) {
  auto spec = spec_of(asked);
  co_await request.valid(spec);
  const space_spec& wanted = *spec;
  auto space = co_await opened(request, wanted);
  co_return space;
}

} // namespace

task<> open_space(client_request& request, const wire::OpenSpace& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  space_ptr space;
  uint32_t number = asked.known_space();
  if (number != 0) {
    co_await request.may_govern("who opens a space by its number need not know the tenant's salt");
    space = co_await known(request, number);
  } else {
    space = co_await described(request, asked);
  }
  if (resp::is_value_space(space->spec)) {
    request.refuse(
        {errc::denied, "layout is '" + space->spec.layout +
                           "', which is kept for values of Redis clients, whose sizes differ: expected "
                           "another layout"});
    co_return;
  }
  auto rank = static_cast<uint16_t>(asked.rank());
  auto mine = std::make_shared<client_space>();
  mine->space = space;
  mine->hasher = make_token_hasher(space->spec);
  mine->rank = rank;
  mine->defaults = defaults_of(asked);
  mine->probe = client.environment().spaces->probe(client.group().name, space->spec.model);
  auto added = client.holdings().spaces().add(std::move(mine));
  co_await request.valid(added);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) { return write_open_space_answer(body, *space); });
}

// close_space: the connection no longer uses a space, so that the trust group may forget it.

task<> close_space(client_request& request, const wire::CloseSpace& asked, protocol::descriptor_list&) {
  auto closed = request.client.holdings().close_space(static_cast<space_id>(asked.space()));
  co_await request.valid(closed);
  request.reply(wire::CreateCloseSpaceAnswer);
}

} // namespace terrace::actors::verbs
