#include "actors/connection/transfers.hpp"

#include "base/tier_properties.hpp"
#include "connection/request_values.hpp"
#include "group/leased_part.hpp"
#include "protocol/descriptors.hpp"

#include <algorithm>

namespace terrace::actors {

lookup_request lookup_of(const client_request& request, const space_ptr& space,
                         const std::shared_ptr<const chunk_prefix>& prefix) {
  lookup_request asked;
  asked.group = request.client.group_handle();
  asked.space = space;
  asked.objects = {space, {prefix, &prefix->chunks}};
  asked.context = request.context;
  asked.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens,
                prefix->tail_tokens};
  return asked;
}

// ---- who hears of it ----

void use_for_inference(client_request& request, const wire::Options* options, object_source objects) {
  if (request.context->inference == 0)
    return;
  size_t count = objects.size();
  request.actor.tell_policy(begin_of(*request.context, *options, std::move(objects)), count);
}

void tell_shadows(client_request& request, const wire::Options* options, const space_ptr& space,
                  std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  const trust_group& group = request.client.group();
  if (!group.shadow_gate || prefix->chunks.empty() ||
      !group.shadow_gate->offer_or_skip(prefix->chunks.size()))
    return;
  request.actor.send(group.shadow, shadow_use_of(*request.context, options, space, std::move(prefix), rank));
}

std::optional<bool> read_some(client_request& request, lease_reading& work) {
  auto more = request.client.holdings().read_some(work);
  request.client.show();
  if (!request.ok(more))
    return std::nullopt;
  return *more;
}

// ---- objects ----

task<batch_ptr> transfer_objects(client_request& request, scope_subject subject) {
  size_t count = subject.scope.objects();
  co_await request.room(count);
  scope_objects named(std::move(subject));
  if (count > scope_objects::slice_objects) {
    co_await request.turn("its objects were named");
  }
  while (!named.step()) {
    co_await request.turn("its objects were named");
  }
  co_return named.take();
}

task<leased_objects> transfer_objects(client_request& request, lease_ptr from, transfer_scope scope,
                                      uint16_t rank) {
  scope_subject subject = subject_of(from, scope, rank);
  auto named = co_await transfer_objects(request, std::move(subject));
  leased_part part(from, scope, rank);
  while (!part.step()) {
    co_await request.turn("its objects were named");
  }
  co_return leased_objects{std::move(named), part.take()};
}

namespace {

/// Copying so few takes less time than keeping the frame as long as the transfer.
constexpr size_t few_runs = 1024;

// A run on the wire is one in memory, so a list of them is read in place.
static_assert(sizeof(wire::Run) == sizeof(region_run) && alignof(wire::Run) == alignof(region_run) &&
              FLATBUFFERS_LITTLEENDIAN);

} // namespace

task<std::shared_ptr<const scatter_gather>> checked_runs(client_request& request, const run_lists& sent,
                                                         batch_ptr objects, uint64_t region_bytes) {
  std::span all(reinterpret_cast<const region_run*>(sent.runs->Data()), sent.runs->size());
  keep_alive owner;
  if (all.size() <= few_runs) {
    auto copied = std::make_shared<const std::vector<region_run>>(all.begin(), all.end());
    all = *copied;
    owner = std::move(copied);
  } else {
    owner = request.body();
  }
  scatter_gather_maker::input input{
      all,          span_of(sent.per_object), std::move(owner), objects->payload_bytes,
      region_bytes, protocol::runs_max};
  scatter_gather_maker maker(std::move(input));
  while (true) {
    auto done = maker.step();
    co_await request.valid(done);
    if (*done)
      break;
    co_await request.turn("its runs were checked");
  }
  co_return std::make_shared<const scatter_gather>(maker.take());
}

outside_memory outside(const std::shared_ptr<const client_region>& region) {
  region->copy_begins();
  return {.data = region->data(),
          .fd = region->fd(),
          .bytes = region->size(),
          .owner = region,
          .device = region->device().get(),
          .ahead = region->ahead()};
}

bool can_bring_to(client_request& request, tier_kind to) {
  const trust_group& group = request.client.group();
  auto refuse = [&](const std::string& why) {
    request.refuse({errc::unsupported, why});
    return false;
  };
  if (to == memory_tier)
    return !group.staging_only ||
           refuse(
               "host.staging_only is true: expected a load, since what is brought to host memory would not "
               "stay there");
  if (!faster_than_memory(to))
    return refuse("expected to 0 (GPU tier) or 1 (host memory), got " +
                  std::to_string(static_cast<unsigned>(to)));
  const tier_handle* tier = group.tier(to);
  if (tier == nullptr)
    return refuse("the trust group has no tier in memory of a GPU (gpu.tier_bytes)");
  if (!tier->reads()) {
    std::string reason = tier->degraded();
    return refuse("the GPU tier is not in service: " + (reason.empty() ? tier->notice() : reason));
  }
  return true;
}

uint64_t room_to_bring(const trust_group& group, tier_kind to) {
  if (to != memory_tier)
    return group.tier(to)->bytes; // nothing else needs it, and what has arrived is held until the end
  uint64_t size = group.memory->size();
  return (size - std::min(size, group.leases->bytes())) / 2;
}

} // namespace terrace::actors
