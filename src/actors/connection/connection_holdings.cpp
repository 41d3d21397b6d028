// What a connection holds for its client: spaces, regions, staging memory, leases. connection.cpp has its life.
#include "actors/connection/connection.hpp"

#include "connection/client_rights.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

#include <unistd.h>

namespace terrace::actors {

bool connection::may_govern(const request& what, const char* why) {
  return ok(what, terrace::may_govern(peer_.uid, ::geteuid(), why));
}

bool connection::may_map(const request& what, const char* instead) {
  return ok(what, terrace::may_map(group().name, group().isolated, instead));
}

result<staging*> connection::staging_memory() {
  bool fresh = holdings_.present_staging() == nullptr;
  auto memory = holdings_.staging_memory();
  if (memory && fresh)
    environment_->client_probe->stages(environment_->limits.staging_bytes);
  return memory;
}

void connection::add_lease(lease_ptr taken) {
  tell_group(add_lease_notice{taken->id, taken->owner, taken});
  environment_->client_probe->lease_taken();
  arm_timer(taken->taken + environment_->limits.lease_warn_after);
  log_.debug([&] { return "takes a lease on " + std::to_string(taken->chunks.size()) + " chunks"; });
  holdings_.add(std::move(taken));
  show();
}

bool connection::release_lease(const lease_id& id) {
  bool later = holdings_.ends_elsewhere(id);
  auto ended = holdings_.release(id);
  if (!ended)
    return false;
  if (later)
    serve_after_lease_ends();
  if (ended->owner)
    tell_group(end_lease_notice{id, record_->id});
  lease_ended(*ended);
  log_.debug([] { return std::string("has released a lease"); });
  count_quarantine();
  show();
  return true;
}

revoke_answer connection::on_revoke(const lease_id& id) {
  bool later = holdings_.ends_elsewhere(id);
  auto revoked = holdings_.revoke(id);
  if (!revoked)
    return {};
  if (later)
    serve_after_lease_ends();
  if (revoked->ended.owner) {
    tell_group(end_lease_notice{id, record_->id});
    environment_->client_probe->lease_revoked();
  }
  lease_ended(revoked->ended);
  log_.info(std::string(revoked->ended.owner ? "had its lease" : "had a lease that it read") +
            " revoked by an operator; " + std::to_string(revoked->reading_bytes) +
            " bytes that it may be reading are kept until it releases them or ends");
  count_quarantine();
  show();
  return {{}, true, revoked->reading_bytes};
}

/// What the client may be reading although it has no right to it any longer.
void connection::count_quarantine() {
  bool whole = life_.now() == connection_phase::quarantined;
  uint64_t bytes = whole ? holdings_.reading_bytes() : holdings_.revoked_bytes();
  environment_->client_probe->quarantines(bytes);
  environment_->client_probe->unquarantines(std::exchange(quarantined_bytes_, bytes));
  record_->quarantined_bytes = bytes;
}

bool connection::has_read(const lease_id& id) {
  bool later = holdings_.has_read(id);
  if (later)
    serve_after_lease_ends();
  return later;
}

/// The requests that follow find the room that the lease leaves.
void connection::serve_after_lease_ends() {
  gate_.sent_without_credit();
  assert(gate_.without_credit() <= without_credit_max());
  group().lease_ends->run(on_any_thread([this] {
    gate_.read_without_credit();
    pump();
  }));
}

std::function<void()> connection::lease_ender(const lease_id& id) {
  return on_any_thread([this, id] {
    if (!holdings_.may_be_reading(id))
      release_lease(id);
  });
}

void connection::lease_ended(const client_holdings::ended_lease& ended) {
  if (!ended.owner)
    return;
  environment_->client_probe->lease_ended();
  if (ended.old)
    environment_->client_probe->old_lease_ended();
}

std::optional<bool> connection::read_some(const request& what, lease_reading& work) {
  auto more = holdings_.read_some(work);
  show();
  if (!ok(what, more))
    return std::nullopt;
  return *more;
}

// ---- inferences ----

request_defaults connection::defaults_of_space(uint32_t id) const {
  auto known = holdings_.space(static_cast<space_id>(id));
  return known ? known->defaults : request_defaults{};
}

void connection::take_options(const request& what, const wire::Options* options,
                              const request_defaults& space) {
  what.context->priority = priority_of(options, space);
  what.context->inference = options != nullptr ? options->inference() : 0;
  if (options != nullptr && options->trace() != nullptr)
    what.context->trace = options->trace()->str();
}

void connection::use_for_inference(const request& what, const wire::Options* options, object_source objects) {
  if (what.context->inference == 0)
    return;
  size_t count = objects.size();
  tell_policy(begin_of(*what.context, *options, std::move(objects)), count);
}

void connection::tell_shadows(const request& what, const wire::Options* options, const space_ptr& in,
                              std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  if (!group().feed || prefix->chunks.empty() || !group().feed->offer(prefix->chunks.size()))
    return;
  send(group().shadow, shadow_use_of(*what.context, options, in, std::move(prefix), rank));
}

} // namespace terrace::actors
