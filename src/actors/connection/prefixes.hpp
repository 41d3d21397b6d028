// Resolves the prefix of a request into its objects.
#pragma once

#include "actors/connection/connection.hpp"
#include "index/prefix_resolver.hpp"
#include "tier/objects/scope_objects.hpp"

#include <functional>

namespace terrace::actors {

/// Prompts of so few tokens are hashed with the connection's own hasher.
constexpr size_t short_tokens = 16'384;

/// Calls `then` with the chunks of the prefix, or refuses the request. Immediately for digests and few
/// tokens; many tokens are hashed in slices between other messages. `body` keeps the frame's body; null if the frame is
/// still being served and need not be kept unless `then` continues later. A prefix in a session is that of the whole prompt,
/// and the session stays as it is. A prefix with a tail has it as its last chunk; without a session it is refused.
using chunks_handler = std::function<void(chunk_prefix, keep_alive body)>;
void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, chunks_handler then);

/// The same, and a tail may be without a session: for prompts that are named by all of their tokens.
void with_prompt_chunks(connection& client, const connection::request& what, const client_space& in,
                        const wire::Prefix& prefix, chunks_handler then);

/// The same for what is about to be stored or saved: a tail may be without a session, and nobody removes it from now on until
/// it is saved.
void with_stored_chunks(connection& client, const connection::request& what, const client_space& in,
                        const wire::Prefix& prefix, chunks_handler then);

/// Calls `then` with the objects of a transfer, for which the request is charged: at once if they are few, otherwise they are
/// made in slices between other messages, once the trust group's memory has room for them. Refuses the request if it ends
/// meanwhile. `body` keeps what `then` needs of the frame, see `with_chunks`.
void with_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then);

/// The same for the objects of a lease that this rank has, with what it holds of them, by tier.
void with_leased_objects(connection& client, const connection::request& what, const lease_ptr& from,
                         const transfer_scope& scope, uint16_t rank, keep_alive body,
                         std::function<void(batch_ptr, tier_holds)> then);

/// A region for copiers; kept until the last copy of the result is destroyed.
outside_memory outside(const std::shared_ptr<const client_region>& region);

} // namespace terrace::actors
