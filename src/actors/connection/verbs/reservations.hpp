// Shared by commit and abort: reservations of staging memory.
#pragma once

#include "actors/connection/request.hpp"

namespace terrace::actors::verbs {

/// Null: there is no such reservation, and the request was refused.
inline std::shared_ptr<staged> take_reservation(client_request& request, uint64_t id) {
  auto memory = request.client.staging_memory();
  auto taken = memory ? (*memory)->take(id) : tl::unexpected(memory.error());
  return request.ok(taken) ? *taken : nullptr;
}

/// Its memory can be reserved again.
inline void put_back(connected_client& client, const staged& reservation) {
  staging* memory = client.holdings().present_staging();
  if (memory == nullptr)
    return;
  memory->put_back(reservation);
  client.show();
}

} // namespace terrace::actors::verbs
