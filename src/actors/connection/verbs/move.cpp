// move: brings the chunks of a prompt to a tier.
#include "actors/connection/request.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"
#include "tier/objects/move_plan.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

namespace {

uint64_t chunk_bytes_of(const space_spec& spec) {
  chunk_layout layout(spec);
  uint64_t bytes = 0;
  for (size_t pool = 0; pool < spec.pools.size(); ++pool)
    bytes += layout.ranks(pool) * spec.pools[pool].object_bytes;
  return bytes;
}

moved_chunks sum_of(const space_spec& spec, const prefetch_result& done, tier_kind to) {
  uint64_t bytes = chunk_bytes_of(spec);
  auto share = [&](uint32_t chunks) { return moved_share{chunks, chunks * bytes}; };
  const prefetch_share& there = done.by_tier[static_cast<size_t>(to)];
  uint32_t moved = 0, below = 0;
  for (const prefetch_share& tier : done.by_tier)
    if (&tier != &there) {
      moved += tier.delivered;
      below += tier.found;
    }
  moved_chunks sum;
  sum.requested = done.requested;
  sum.moved = share(moved);
  sum.present = share(there.found);
  sum.missing = share(done.requested - done.all.found);
  sum.failed = share(below - moved);
  return sum;
}

task<moved_chunks> move_down(client_request& request, space_ptr space,
                             std::shared_ptr<const chunk_prefix> prefix) {
  move_job job;
  job.group = request.client.group_handle();
  job.to = request.client.group().disk()->kind;
  job.space = space;
  job.chunks = {prefix, &prefix->chunks};
  job.before = prefix->parent;
  job.context = request.context;
  request.release_body();
  auto worker = spawn_move(request.actor.system());
  auto done = co_await request.ask<move_result>(worker, std::move(job), "the move's actor has ended");
  co_await request.valid(done.failure);
  co_return done.sum;
}

/// As a prefetch does.
task<moved_chunks> move_up(client_request& request, space_ptr space,
                           std::shared_ptr<const chunk_prefix> prefix, tier_kind to) {
  connected_client& client = request.client;
  request.context->ahead = true;
  auto question = lookup_of(request, space, prefix);
  question.object_tiers = true;
  auto found = co_await request.look_up(std::move(question));
  prefetch_job job;
  job.group = client.group_handle();
  job.space = space;
  job.chunks = {prefix, &prefix->chunks};
  job.before = prefix->parent;
  job.first_token = prefix->first_token;
  job.prompt_tokens = prefix->prompt_tokens;
  job.waits = true;
  job.to = to;
  job.context = request.context;
  job.found = job.expected = std::make_shared<const prefix_plan>(std::move(found.plan));
  request.release_body();
  auto worker = spawn_prefetch(request.actor.system());
  auto stop =
      std::make_shared<std::function<void()>>([worker] { caf::anon_send(worker, stop_prefetch_notice{}); });
  request.actor.when_ended(request.context, stop);
  auto done = co_await request.ask<prefetch_result>(worker, std::move(job), "the move's actor has ended");
  co_await request.valid(done.failure);
  co_return sum_of(space->spec, done, to);
}

} // namespace

task<> move(client_request& request, const wire::Move& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_govern("a move changes the tiers of all clients of the trust group");
  auto space = co_await request.space_of(asked);
  auto to = static_cast<tier_kind>(asked.to());
  if (durable(to) && client.group().disk() == nullptr) {
    request.refuse({errc::unsupported, "the trust group has no disk tier in service"});
    co_return;
  }
  if (!durable(to) && !can_bring_to(request, to))
    co_return;
  auto named = co_await request.chunks_of(*space, asked);
  auto prefix = std::make_shared<const chunk_prefix>(std::move(named));
  moved_chunks sum;
  if (!prefix->chunks.empty()) {
    size_t charged = object_source(space->space, {prefix, &prefix->chunks}).size() / 64; // some at a time
    co_await request.room(charged);
    if (durable(to)) {
      sum = co_await move_down(request, space->space, prefix);
    } else {
      sum = co_await move_up(request, space->space, prefix, to);
    }
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    auto share = [](const moved_share& one) { return wire::MoveShare(one.bytes, one.chunks); };
    auto moved = share(sum.moved), present = share(sum.present), missing = share(sum.missing),
         held = share(sum.held), failed = share(sum.failed);
    return wire::CreateMoveAnswer(body, sum.requested, &moved, &present, &missing, &held, &failed);
  });
}

} // namespace terrace::actors::verbs
