// Resolves the prefix of a request in a session: the session's tokens up to a base, and those that were sent.
#pragma once

#include "actors/connection/connection.hpp"
#include "group/session_turn.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace terrace::actors {

/// A turn whose tokens are hashed. The session changes when it is saved.
struct hashed_turn {
  session_id session;
  uint64_t generation = 0; ///< of the session when the turn began
  session_state_ptr after;
  bool held = false;         ///< mode of the session
  uint32_t held_chunks = 0;  ///< the first ones, which it held in host memory when the turn began
  uint32_t left_out = 0;     ///< chunks before the prefix
  departure_counts before{}; ///< of host memory; read before `left_out` was known
};

/// Calls `then` with the chunks of the whole prompt, or refuses the request. The new tokens are hashed in slices between
/// other messages. `prefix` names a session. `body` keeps the frame's body.
/// `tail`: the tokens after the last whole chunk are a chunk, too.
using turn_handler = std::function<void(chunk_prefix, const hashed_turn&, keep_alive body)>;
void with_turn(connection& client, const connection::request& what, const client_space& in,
               const wire::Prefix& prefix, bool tail, turn_handler then);

/// The same without the first chunks that are known to be in host memory (index/known_prefix.hpp): `left_out` in the turn
/// says how many, and the prefix begins behind them.
void with_rest_of_turn(connection& client, const connection::request& what, const client_space& in,
                       const wire::Prefix& prefix, turn_handler then);

/// Calls `then` once the session has the tokens of the turn, or has ended since the turn began. Refuses the request with
/// `gone` if another turn has changed the session.
void save_turn(connection& client, const connection::request& what, const hashed_turn& turn,
               std::function<void()> then);

/// The same for a turn that has ended; the session holds `hold` from then on. `then` is called with why it does not.
void save_turn(connection& client, const connection::request& what, const hashed_turn& turn,
               std::optional<session_hold> hold, std::function<void(const std::string& unheld)> then);

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes);

} // namespace terrace::actors
