// What a connection holds for its client: spaces, regions, staging memory, leases. connection.cpp has its life.
#include "actors/connection/connection.hpp"

#include <algorithm>

namespace terrace::actors {

client_space_ptr connection::find_space(const request& what, uint32_t id) {
  auto entry = spaces_.find(static_cast<space_id>(id));
  if (entry != spaces_.end())
    return entry->second;
  refuse(what, {errc::not_found, "this connection has not opened space " + std::to_string(id) +
                                     "; open_space comes first, on every connection"});
  return nullptr;
}

std::shared_ptr<const client_region> connection::find_region(const request& what, uint32_t id) {
  auto entry = regions_.find(static_cast<region_id>(id));
  if (entry != regions_.end())
    return entry->second;
  refuse(what, {errc::not_found, "this connection has not registered region " + std::to_string(id)});
  return nullptr;
}

result<region_id> connection::add_region(std::shared_ptr<const client_region> region) {
  if (regions_.size() >= environment_->limits.regions_max)
    return fail(errc::busy, "the connection has " + std::to_string(regions_.size()) +
                                " regions, as many as connection.regions_max allows; unregister one");
  auto id = static_cast<region_id>(next_region_++);
  environment_->client_probe->maps(region->size());
  record_->region_bytes += region->size();
  regions_.emplace(id, std::move(region));
  record_->regions = static_cast<uint32_t>(regions_.size());
  return id;
}

bool connection::remove_region(region_id id) {
  auto entry = regions_.find(id);
  if (entry == regions_.end())
    return false;
  environment_->client_probe->unmaps(entry->second->size());
  record_->region_bytes -= entry->second->size();
  regions_.erase(entry); // transfers in flight keep it until they are done
  record_->regions = static_cast<uint32_t>(regions_.size());
  return true;
}

result<staging*> connection::staging_memory() {
  if (!staging_) {
    auto made = staging::create(environment_->limits.staging_bytes);
    if (!made)
      return tl::unexpected(made.error());
    staging_ = std::move(*made);
    environment_->client_probe->stages(environment_->limits.staging_bytes);
  }
  return staging_.get();
}

std::shared_ptr<const arena> connection::map_segment(uint32_t number) {
  auto memory = group().memory->lend(number);
  if (memory)
    mapped_[number] = memory;
  return memory;
}

bool connection::may_lease(const request& what) {
  if (leases_.size() < environment_->limits.leases_max)
    return true;
  refuse(what, {errc::busy, "the connection holds " + std::to_string(leases_.size()) +
                                " leases, as many as connection.leases_max allows; release some"});
  return false;
}

bool connection::may_name(const request& what, size_t objects) {
  uint64_t most = environment_->limits.lease_objects_max;
  if (lease_objects_ + objects <= most)
    return true;
  refuse(what, {errc::busy, "the leases of the connection name " + std::to_string(lease_objects_) +
                                " objects, and with " + std::to_string(objects) +
                                " more they would be over connection.lease_objects_max (" +
                                std::to_string(most) + "); release some"});
  return false;
}

namespace {
/// That count in `lease_objects_max`.
uint64_t objects_of(const lease& held) {
  return (held.host ? held.host->places().size() : 0) + (held.disk ? held.disk->places().size() : 0);
}
} // namespace

void connection::add_lease(lease_ptr taken) {
  self->send(group().group, add_lease_notice{taken->id, taken->owner, taken});
  environment_->client_probe->lease_taken();
  arm_timer(taken->taken + environment_->limits.lease_warn_after);
  auto id = taken->id;
  held_lease held{std::move(taken), true, false, {}, {}};
  held.objects = objects_of(*held.what);
  lease_objects_ += held.objects;
  leases_.emplace(id, std::move(held));
  record_->leases = static_cast<uint32_t>(leases_.size());
}

bool connection::release_lease(const lease_id& id) {
  auto entry = leases_.find(id);
  if (entry == leases_.end())
    return false;
  if (entry->second.owner)
    self->send(group().group, end_lease_notice{id, record_->id});
  lease_ended(entry->second);
  lease_objects_ -= entry->second.objects;
  leases_.erase(entry);
  record_->leases = static_cast<uint32_t>(leases_.size());
  return true;
}

void connection::end_unread_lease(const lease_id& id) {
  if (auto entry = leases_.find(id); entry != leases_.end() && entry->second.reading.empty())
    release_lease(id);
}

void connection::lease_ended(const held_lease& held) {
  if (!held.owner)
    return;
  environment_->client_probe->lease_ended();
  if (held.warned)
    environment_->client_probe->old_lease_ended();
}

bool connection::reads(const request& what, const lease_ptr& from, const std::vector<object_place>& places,
                       const std::vector<hold_ptr>& holds) {
  auto known = leases_.find(from->id);
  bool news = known == leases_.end() || std::any_of(places.begin(), places.end(), [&](const object_place& p) {
                return !known->second.told.contains(p.id);
              });
  if (!news)
    return true; // what was told before is held already, however often the client asks
  if (!may_name(what, places.size()))
    return false;
  auto& held = leases_[from->id];
  held.what = from;
  for (const object_place& place : places)
    held.told.insert(place.id);
  held.reading.insert(held.reading.end(), holds.begin(), holds.end());
  held.objects += places.size();
  lease_objects_ += places.size();
  record_->leases = static_cast<uint32_t>(leases_.size());
  return true;
}

void connection::has_read(const lease_id& id) {
  auto known = leases_.find(id);
  if (known == leases_.end())
    return;
  held_lease& held = known->second;
  uint64_t told = held.objects - (held.owner ? objects_of(*held.what) : 0);
  held.reading.clear();
  held.told.clear();
  held.objects -= told;
  lease_objects_ -= told;
}

void connection::with_lease(const request& what, const lease_id& id,
                            std::function<void(const lease_ptr&)> then) {
  if (auto entry = leases_.find(id); entry != leases_.end()) {
    then(entry->second.what);
    return;
  }
  self->request(group().group, caf::infinite, use_lease_request{id})
      .then(
          [this, what, then = std::move(then)](const use_lease_answer& answer) {
            if (answer.failure.code != errc::ok)
              refuse(what, answer.failure);
            else
              then(answer.found);
          },
          [this, what](const caf::error&) {
            refuse(what, {errc::internal, "the trust group's actor has ended"});
          });
}

// ---- inferences ----

void connection::set_inference(const request& what, const wire::Options* options) {
  what.context->inference = options != nullptr ? options->inference() : 0;
}

namespace {
request_hints hints_of(const wire::Options& options) {
  request_hints hints;
  hints.session = options.session();
  hints.turn = options.turn();
  hints.priority = static_cast<uint8_t>((255 - options.priority()) / 32); // 0 to 7, higher stays longer
  return hints;
}

std::optional<policy_time> time_of(const wire::Options& options) {
  auto told = options.time_ns();
  return told ? std::optional<policy_time>(*told) : std::nullopt;
}
} // namespace

void connection::use_for_inference(const request& what, const wire::Options* options, batch_ptr objects) {
  if (what.context->inference == 0)
    return;
  self->send(group().policy, inference_begin{what.context->inference, std::move(objects), hints_of(*options),
                                             time_of(*options)});
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
  self->send(group().shadow, std::move(use));
}

} // namespace terrace::actors
