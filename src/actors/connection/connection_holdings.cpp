// What a connection holds for its client: spaces, regions, staging memory, leases. connection.cpp has its life.
#include "actors/connection/connection.hpp"

#include "connection/request_values.hpp"

#include <caf/send.hpp>

#include <unistd.h>

namespace terrace::actors {

bool connection::may_govern(const request& what, const char* why) {
  if (peer_.uid == 0 || peer_.uid == ::geteuid())
    return true;
  refuse(what, {errc::denied, "expected the daemon's own user or root, got user " +
                                  std::to_string(peer_.uid) + ": " + why});
  return false;
}

bool connection::may_map(const request& what, const char* instead) {
  if (group().isolated)
    refuse(what,
           {errc::denied, "nothing is mapped in the isolated group " + group().name + "; use " + instead});
  return !group().isolated;
}

client_space_ptr connection::find_space(const request& what, uint32_t id) {
  auto found = holdings_.space(static_cast<space_id>(id));
  if (!found)
    refuse(what, {errc::not_found, "this connection has not opened space " + std::to_string(id) +
                                       "; open_space comes first, on every connection"});
  return found;
}

client_region_ptr connection::find_region(const request& what, uint32_t id) {
  auto found = holdings_.region(static_cast<region_id>(id));
  if (!found)
    refuse(what, {errc::not_found, "this connection has not registered region " + std::to_string(id)});
  return found;
}

void connection::show_regions() {
  record_->region_bytes = holdings_.region_bytes();
  record_->regions = holdings_.regions();
}

result<region_id> connection::add_region(client_region_ptr region) {
  auto id = holdings_.add(std::move(region));
  show_regions();
  return id;
}

bool connection::remove_region(region_id id) {
  bool was_there = holdings_.remove(id) != nullptr;
  show_regions();
  return was_there;
}

result<staging*> connection::staging_memory() {
  bool fresh = holdings_.present_staging() == nullptr;
  auto memory = holdings_.staging_memory();
  if (memory && fresh)
    environment_->client_probe->stages(environment_->limits.staging_bytes);
  return memory;
}

std::shared_ptr<const arena> connection::map_segment(uint32_t number) {
  auto memory = group().memory->lend(number);
  if (memory)
    holdings_.keep_segment(number, memory);
  return memory;
}

void connection::add_lease(lease_ptr taken) {
  tell_group(add_lease_notice{taken->id, taken->owner, taken});
  environment_->client_probe->lease_taken();
  arm_timer(taken->taken + environment_->limits.lease_warn_after);
  log_.debug([&] { return "takes a lease on " + std::to_string(taken->chunks.size()) + " chunks"; });
  holdings_.add(std::move(taken));
  show_leases();
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
  show_leases();
  return true;
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
  show_leases();
  if (!ok(what, more))
    return std::nullopt;
  return *more;
}

void connection::with_lease(const request& what, const lease_id& id,
                            std::function<void(const lease_ptr&)> then) {
  if (auto known = holdings_.lease_of(id)) {
    then(known);
    return;
  }
  gate_.cost_unknown();
  ask(
      group().group, use_lease_request{id},
      [this, what, then = std::move(then)](const use_lease_answer& answer) {
        gate_.cost_known();
        if (answer.failure.code != errc::ok)
          refuse(what, answer.failure);
        else
          then(answer.found);
        pump();
      },
      [this, what] {
        gate_.cost_known();
        refuse(what, {errc::internal, "the trust group's actor has ended"});
      });
}

// ---- inferences ----

void connection::take_options(const request& what, const wire::Options* options) {
  what.context->inference = options != nullptr ? options->inference() : 0;
  if (options != nullptr && options->trace() != nullptr)
    what.context->trace = options->trace()->str();
}

void connection::use_for_inference(const request& what, const wire::Options* options, object_source objects) {
  if (what.context->inference == 0)
    return;
  size_t count = objects.size();
  tell_policy(
      inference_begin{what.context->inference, std::move(objects), hints_of(*options), time_of(*options)},
      count);
}

void connection::tell_shadows(const request& what, const wire::Options* options, const space_ptr& in,
                              std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  if (!group().feed || prefix->chunks.empty() || !group().feed->offer(prefix->chunks.size()))
    return;
  shadow_use use{in, std::move(prefix), rank, what.context->inference, {}, {}};
  if (options != nullptr)
    use.hints = hints_of(*options);
  if (options != nullptr && use.inference != 0)
    use.told = time_of(*options);
  send(group().shadow, std::move(use));
}

} // namespace terrace::actors
