#include "actors/connection/connected_client.hpp"

#include "connection/handshake.hpp"
#include "connection/request_values.hpp"

#include <unistd.h>

#include <utility>

namespace terrace::actors {

connected_client::connected_client(peer who, client_ptr record,
                                   std::shared_ptr<const connection_environment> environment)
    : environment_(std::move(environment)), peer_(std::move(who)), record_(std::move(record)),
      log_(record_, {environment_->log, environment_->detail, environment_->ends, environment_->leases}),
      leased_(record_->leased),
      holdings_({environment_->limits.staging_bytes, environment_->limits.reservations_max,
                 environment_->limits.spaces_max, environment_->limits.regions_max,
                 environment_->limits.leases_max, environment_->limits.lease_objects_max},
                environment_->teardown, environment_->group->lease_ends),
      regions_(region_budget::make({"the connection", environment_->limits.region_bytes},
                                   environment_->regions)) {}

connected_client::~connected_client() {
  holdings_.drop_segments(); // before others can see that the client is gone
  environment_->client_probe->unquarantines(quarantined_bytes_);
  environment_->clients->remove(record_->id);
  environment_->client_probe->disconnected();
}

error connected_client::may_govern(const char* why) const {
  auto allowed = terrace::may_govern(peer_.uid, ::geteuid(), why);
  return allowed ? error{} : allowed.error();
}

error connected_client::may_map(const char* instead) const {
  auto allowed = terrace::may_map(group().name, group().isolated, instead);
  return allowed ? error{} : allowed.error();
}

result<staging*> connected_client::staging_memory() {
  bool fresh = holdings_.present_staging() == nullptr;
  auto memory = holdings_.staging_memory();
  if (memory && fresh)
    environment_->client_probe->stages(environment_->limits.staging_bytes);
  return memory;
}

void connected_client::count_lease_end(const client_holdings::ended_lease& ended) {
  if (!ended.owner)
    return;
  environment_->client_probe->lease_ended();
  if (ended.old)
    environment_->client_probe->old_lease_ended();
}

void connected_client::count_quarantine(bool whole) {
  uint64_t bytes = whole ? holdings_.reading_bytes() : holdings_.revoked_bytes();
  environment_->client_probe->quarantines(bytes);
  environment_->client_probe->unquarantines(std::exchange(quarantined_bytes_, bytes));
  record_->quarantined_bytes = bytes;
}

request_defaults connected_client::defaults_of_space(uint32_t id) {
  auto known = holdings_.spaces().find(static_cast<space_id>(id));
  return known ? known->defaults : request_defaults{};
}

uint32_t connected_client::prefill_speed(const wire::Options* options, const client_space& opened) const {
  return group().cost_model->load(std::memory_order_relaxed) ? prefill_speed_of(options, opened.defaults) : 0;
}

bool connected_client::loads_nothing(const wire::Options* options, const client_space& opened) {
  bool nothing = no_load_of(options, opened.defaults);
  if (nothing)
    environment_->client_probe->loaded_nothing();
  return nothing;
}

bool connected_client::stores_nothing(const wire::Options* options, const client_space& opened) {
  bool nothing = no_store_of(options, opened.defaults);
  if (nothing)
    environment_->client_probe->stored_nothing();
  return nothing;
}

void connected_client::count_recomputed(const space_spec& spec, uint32_t chunks) {
  if (chunks != 0)
    environment_->client_probe->left_to_recompute(uint64_t{chunks} * spec.chunk_tokens);
}

} // namespace terrace::actors
