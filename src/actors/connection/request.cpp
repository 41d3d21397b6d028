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

// ---- lookups ----

namespace {

constexpr uint32_t bit_of(tier_kind tier) { return 1U << static_cast<unsigned>(tier); }

/// The first object that no tier above the `shared` one has, as far as `found` says; the store is asked for those from there on.
size_t first_elsewhere(const lookup_request& question, const prefix_plan& found, tier_kind shared) {
  size_t chunk = 0;
  while (chunk < found.found_chunks && found.chunk_tiers[chunk] < shared)
    ++chunk;
  return chunk * chunk_layout(question.space->spec).objects_per_chunk();
}

} // namespace

namespace {

bool is_asked(const tier_handle& tier, uint32_t tiers) {
  return tier.store && tier.reads() && (tiers == 0 || (tiers & bit_of(tier.kind)) != 0);
}

} // namespace

bool asks_stores(const trust_group& group, uint32_t tiers) {
  return std::ranges::any_of(group.tiers(),
                             [tiers](const tier_handle& tier) { return is_asked(tier, tiers); });
}

task<lookup_answer> client_request::look_up(lookup_request question) {
  const bool shared = asks_stores(*question.group, question.tiers);
  if (shared && question.hold) {
    uint32_t others = question.tiers == 0 ? ~no_tier : question.tiers;
    for (tier_kind store : remote_tiers)
      others &= ~bit_of(store);
    question.tiers = others == 0 ? no_tier : others;
    return search_tiers(std::move(question));
  }
  return shared && question.asks_store ? search_stores(std::move(question))
                                       : search_tiers(std::move(question));
}

task<lookup_answer> client_request::search_stores(lookup_request question) {
  lookup_request first = question;
  auto found = co_await search_tiers(std::move(first));
  for (const tier_handle& tier : question.group->tiers()) {
    if (!is_asked(tier, question.tiers))
      continue;
    find_request behind{question.space, question.objects, first_elsewhere(question, found.plan, tier.kind)};
    if (behind.first >= question.objects.size())
      break;
    auto told =
        co_await ask<find_answer>(tier.store, std::move(behind), "the actor of the remote store has ended");
    if (!told.changed)
      continue;
    lookup_request again = question;
    found = co_await search_tiers(std::move(again));
  }
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

} // namespace terrace::actors
