// The verbs of the protocol: each is declared by its row in protocol/verbs.def and defined in verbs/.
//
// A verb gets its verified table, refuses what contradicts the connection's state, and answers now or later,
// always through `client_request::reply` or `refuse`. The table is in the frame's body, which is kept until the verb has
// ended; the descriptors are the frame's own until the verb first suspends.
#pragma once

#include "actors/connection/verb_steps.hpp"
#include "actors/transfer/transfer_actors.hpp"

#include <span>

namespace terrace::actors::verbs {

// Shared by commit and abort: reservations of staging memory.

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

namespace terrace::actors {

struct verb {
  protocol::kind kind;
  const char* name;
  /// Not given, if the request was refused at once.
  task<> (*begin)(client_request& request, protocol::frame& frame);
};

/// Null for a kind that clients do not send.
const verb* find_verb(protocol::kind kind);

/// In the order of their kinds.
std::span<const verb> all_verbs();

namespace verbs {
#define TERRACE_VERB(NAME, TABLE, ...)                                                                       \
  task<> NAME(client_request& request, const wire::TABLE& asked, protocol::descriptor_list& descriptors);
#include "protocol/verbs.def"

/// Brings what was found of these chunks to host memory for a request that goes on with what has arrived, in time before its
/// deadline. `found` tells the tiers of objects.
task<prefetch_result> bring_ahead(client_request& request, prefetch_subject subject,
                                  std::shared_ptr<const prefix_plan> found);

/// The result of this lookup, perhaps another client's and not answered yet. The frame's body is released.
task<lookup_outcome_ptr> awaited(client_request& request, lookup_id wanted);

/// Answers those who wait for the lookup that this frame would have begun. No effect if it has no id.
void lookup_refused(const connected_client& client, const request_entry& request,
                    std::span<const uint8_t> body);
} // namespace verbs

} // namespace terrace::actors
