// move: brings the chunks of a prompt to a tier.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/target_tier.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "actors/transfer/move_actor.hpp"
#include "actors/transfer/prefetch_actor.hpp"
#include "index/chunk_layout.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

namespace {

struct moving {
  connection& client;
  connection::request what;
  client_space_ptr in;
  tier_kind to = tier_kind::host;
  std::shared_ptr<const chunk_prefix> prefix;

  std::shared_ptr<const std::vector<digest>> chunks() const { return {prefix, &prefix->chunks}; }
};
using moving_ptr = std::shared_ptr<const moving>;

void answer_move(const moving& of, const moved_chunks& sum) {
  of.client.reply(of.what, [&](flatbuffers::FlatBufferBuilder& body) {
    auto share = [](const moved_share& one) { return wire::MoveShare(one.bytes, one.chunks); };
    auto moved = share(sum.moved), present = share(sum.present), missing = share(sum.missing),
         held = share(sum.held), failed = share(sum.failed);
    return wire::CreateMoveAnswer(body, sum.requested, &moved, &present, &missing, &held, &failed);
  });
}

// ---- down ----

void move_down(const moving_ptr& of) {
  move_job job;
  job.group = of->client.group_handle();
  job.to = tier_kind::disk;
  job.in = of->in->what;
  job.chunks = of->chunks();
  job.before = of->prefix->parent;
  job.context = of->what.context;
  of->client.ask(of->what, spawn_move(of->client.system()), std::move(job), "the move's actor has ended",
                 [of](const move_result& done) {
                   if (of->client.ok(of->what, done.failure))
                     answer_move(*of, done.sum);
                 });
}

// ---- up: as a prefetch does ----

uint64_t chunk_bytes(const space_spec& spec) {
  chunk_layout layout(spec);
  uint64_t bytes = 0;
  for (size_t pool = 0; pool < spec.pools.size(); ++pool)
    bytes += layout.ranks(pool) * spec.pools[pool].object_bytes;
  return bytes;
}

moved_chunks sum_of(const space_spec& spec, const prefetch_result& done, tier_kind to) {
  uint64_t bytes = chunk_bytes(spec);
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

void start_move_up(const moving_ptr& of, const std::shared_ptr<const prefix_plan>& found) {
  connection& client = of->client;
  prefetch_job job;
  job.group = client.group_handle();
  job.in = of->in->what;
  job.chunks = of->chunks();
  job.before = of->prefix->parent;
  job.first_token = of->prefix->first_token;
  job.prompt_tokens = of->prefix->prompt_tokens;
  job.waits = true;
  job.to = of->to;
  job.context = of->what.context;
  job.found = job.expected = found;
  caf::actor worker = spawn_prefetch(client.system());
  auto stop =
      std::make_shared<std::function<void()>>([worker] { caf::anon_send(worker, stop_prefetch_notice{}); });
  client.when_ended(of->what, stop);
  client.ask(of->what, worker, std::move(job), "the move's actor has ended",
             [of, stop](const prefetch_result& done) {
               if (of->client.ok(of->what, done.failure))
                 answer_move(*of, sum_of(of->in->what->spec, done, of->to));
             });
}

void move_up(const moving_ptr& of) {
  connection& client = of->client;
  of->what.context->ahead = true;
  lookup_request request;
  request.group = client.group_handle();
  request.in = of->in->what;
  request.objects = {of->in->what, of->chunks()};
  request.context = of->what.context;
  request.plan = {static_cast<uint32_t>(of->prefix->chunks.size()), of->prefix->first_token,
                  of->prefix->prompt_tokens};
  request.object_tiers = true;
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(of->what, worker, std::move(request), "the lookup's actor has ended",
             [of, worker](const lookup_answer& found) {
               of->client.idle_lookups().put_back(worker);
               if (of->client.ok(of->what, found.failure))
                 start_move_up(of, std::make_shared<const prefix_plan>(found.plan));
             });
}

} // namespace

void move(connection& client, const connection::request& what, const wire::Move& asked,
          protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_govern(what, "a move changes the tiers of all clients of the trust group"))
    return;
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto to = static_cast<tier_kind>(asked.to());
  if (to == tier_kind::disk && client.group().disk() == nullptr) {
    client.refuse(what, {errc::unsupported, "the trust group has no disk tier in service"});
    return;
  }
  if (to != tier_kind::disk && !can_bring_to(client, what, to))
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, in, to](chunk_prefix prefix, const keep_alive&) {
                auto of = std::make_shared<const moving>(
                    moving{client, what, in, to, std::make_shared<const chunk_prefix>(std::move(prefix))});
                if (of->prefix->chunks.empty()) {
                  answer_move(*of, {});
                  return;
                }
                size_t objects = object_source(in->what, of->chunks()).size() / 64; // some at a time
                client.with_room(what, objects, [of, to] {
                  if (to == tier_kind::disk)
                    move_down(of);
                  else
                    move_up(of);
                });
              });
}

} // namespace terrace::actors::verbs
