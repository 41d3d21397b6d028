#include "actors/connection/request.hpp"

#include "actors/connection/verbs.hpp"
#include "base/tier_properties.hpp"
#include "connection/request_values.hpp"
#include "group/leased_part.hpp"
#include "protocol/descriptors.hpp"

#include <algorithm>
#include <new>

namespace terrace::actors {

void continuation::fail(const error& why) const {
  if (alive())
    request_->fail(why);
}

// ---- its life ----

void client_request::serve(const verb& work, protocol::frame& frame, std::list<client_request>::iterator at) {
  at_ = at;
  starting_ = true;
  try {
    work_ = work.begin(*this, frame);
    if (work_.is_given())
      work_.start(this);
  } catch (const std::bad_alloc&) { // there is none for the coroutine itself
    refuse(no_memory_for(kind));
  }
  starting_ = false;
  if (!work_.in_progress())
    actor.served(at_);
  else if (keeps_body_)
    body_ = inbox().hold_body();
}

void client_request::task_ended() noexcept {
  if (!starting_)
    actor.served(at_);
}

void client_request::task_failed(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    refuse(no_memory_for(kind));
  } // anything else ends the process
}

void client_request::fail(const error& why) {
  try {
    refuse(why);
  } catch (const std::bad_alloc&) { // there is none for the reason
    refuse(no_memory_for(kind));
  }
  stop();
}

void client_request::clear() {
  work_ = {};
  body_ = nullptr;
  context = nullptr;
  keeps_body_ = true;
  expects_ = false;
}

// ---- what it says of itself ----

void client_request::set_options(const wire::Options* options, const request_defaults& space) {
  context->priority = priority_of(options, space);
  context->inference = options != nullptr ? options->inference() : 0;
  if (options != nullptr && options->trace() != nullptr)
    context->trace = options->trace()->str();
}

void client_request::use_for_inference(const wire::Options* options, object_source objects) {
  if (context->inference == 0)
    return;
  size_t count = objects.size();
  actor.tell_policy(begin_of(*context, *options, std::move(objects)), count);
}

void client_request::tell_shadows(const wire::Options* options, const space_ptr& space,
                                  std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  const trust_group& group = client.group();
  if (!group.shadow_gate || prefix->chunks.empty() ||
      !group.shadow_gate->offer_or_skip(prefix->chunks.size()))
    return;
  actor.send(group.shadow, shadow_use_of(*context, options, space, std::move(prefix), rank));
}

std::optional<bool> client_request::read_some(lease_reading& work) {
  auto more = client.holdings().read_some(work);
  client.show();
  if (!ok(more))
    return std::nullopt;
  return *more;
}

// ---- lookups ----

lookup_request client_request::question(const space_ptr& space,
                                        const std::shared_ptr<const chunk_prefix>& prefix) const {
  lookup_request asked;
  asked.group = client.group_handle();
  asked.space = space;
  asked.objects = {space, {prefix, &prefix->chunks}};
  asked.context = context;
  asked.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens,
                prefix->tail_tokens};
  return asked;
}

namespace {

constexpr uint32_t bit_of(tier_kind tier) { return 1U << static_cast<unsigned>(tier); }

/// The first object that no tier but the `shared` one has, as far as `found` says; the store is asked for those from there on.
size_t first_elsewhere(const lookup_request& question, const prefix_plan& found, tier_kind shared) {
  size_t chunk = 0;
  while (chunk < found.found_chunks && found.chunk_tiers[chunk] != shared)
    ++chunk;
  return chunk * chunk_layout(question.space->spec).objects_per_chunk();
}

} // namespace

const tier_handle* shared_store(const trust_group& group, uint32_t tiers) {
  return group.first_with([tiers](const tier_handle& tier) {
    return tier.store && tier.reads() && (tiers == 0 || (tiers & bit_of(tier.kind)) != 0);
  });
}

task<lookup_answer> client_request::look_up(lookup_request question) {
  const tier_handle* shared = shared_store(*question.group, question.tiers);
  if (shared != nullptr && question.hold) {
    const uint32_t others = ~bit_of(shared->kind);
    question.tiers = question.tiers == 0 ? others : question.tiers & others;
    shared = nullptr;
  }
  return shared == nullptr ? search_tiers(std::move(question)) : search_with(*shared, std::move(question));
}

task<lookup_answer> client_request::search_with(const tier_handle& shared, lookup_request question) {
  lookup_request first = question;
  auto found = co_await search_tiers(std::move(first));
  find_request behind{question.space, question.objects, first_elsewhere(question, found.plan, shared.kind)};
  if (behind.first >= question.objects.size())
    co_return found;
  auto told =
      co_await ask<find_answer>(shared.store, std::move(behind), "the actor of the remote store has ended");
  if (!told.changed)
    co_return found;
  found = co_await search_tiers(std::move(question));
  co_return found;
}

task<lookup_answer> client_request::search_tiers(lookup_request question) {
  if (inbox().may_look_up_at_once())
    if (auto found = look_up_at_once(question))
      co_return std::move(*found);
  caf::actor worker =
      actor.idle().lookups.take([this] { return spawn_lookup(actor.system(), actor.home()); });
  auto found = co_await ask<lookup_answer>(worker, std::move(question), "the lookup's actor has ended");
  actor.idle().lookups.put_back(std::move(worker));
  co_await valid(found.failure);
  if (!context->live()) {
    error ended{context->ended.load(), "the request ended before its lookup was answered"};
    co_await valid(ended);
  }
  co_return found;
}

// ---- objects ----

task<batch_ptr> client_request::objects(scope_subject subject) {
  size_t count = subject.scope.objects();
  co_await room(count);
  scope_objects named(std::move(subject));
  if (count > scope_objects::slice_objects) {
    co_await turn("its objects were named");
  }
  while (!named.step()) {
    co_await turn("its objects were named");
  }
  co_return named.take();
}

task<leased_objects> client_request::objects(lease_ptr from, transfer_scope scope, uint16_t rank) {
  scope_subject subject = subject_of(from, scope, rank);
  auto named = co_await objects(std::move(subject));
  leased_part part(from, scope, rank);
  while (!part.step()) {
    co_await turn("its objects were named");
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

task<std::shared_ptr<const scatter_gather>> client_request::runs(const run_lists& sent, batch_ptr objects,
                                                                 uint64_t region_bytes) {
  std::span all(reinterpret_cast<const region_run*>(sent.runs->Data()), sent.runs->size());
  keep_alive owner;
  if (all.size() <= few_runs) {
    auto copied = std::make_shared<const std::vector<region_run>>(all.begin(), all.end());
    all = *copied;
    owner = std::move(copied);
  } else {
    owner = body_ ? body_ : inbox().hold_body();
  }
  scatter_gather_maker::input input{
      all,          span_of(sent.per_object), std::move(owner), objects->payload_bytes,
      region_bytes, protocol::runs_max};
  scatter_gather_maker maker(std::move(input));
  while (true) {
    auto done = maker.step();
    co_await valid(done);
    if (*done)
      break;
    co_await turn("its runs were checked");
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
