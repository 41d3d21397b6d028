// Shared by commit and abort: reservations of staging memory.
#pragma once

#include "actors/connection/connection.hpp"

namespace terrace::actors::verbs {

/// Null: there is no such reservation, and the request was refused.
inline std::shared_ptr<staged> take_reservation(connection& client, const connection::request& what,
                                                uint64_t id) {
  auto memory = client.staging_memory();
  auto taken = memory ? (*memory)->take(id) : tl::unexpected(memory.error());
  return client.ok(what, taken) ? *taken : nullptr;
}

/// Its memory can be reserved again.
inline void put_back(connection& client, const staged& reservation) {
  staging* memory = client.holdings().present_staging();
  if (memory == nullptr)
    return;
  memory->put_back(reservation);
  client.show();
}

} // namespace terrace::actors::verbs
