// The chunks of a request's prompt, with the turn of a session that it may be. Awaited by verbs, like what request.hpp has.
#pragma once

#include "actors/connection/request.hpp"
#include "group/session_turn.hpp"

#include <optional>
#include <string>

namespace terrace::actors {

/// A turn of a session whose tokens are hashed. The session changes when it is saved.
struct hashed_turn {
  session_id session;
  uint64_t generation = 0; ///< of the session when the turn began
  session_state_ptr after;
  bool held = false;         ///< mode of the session
  uint32_t held_chunks = 0;  ///< the first ones, which it held in host memory when the turn began
  uint32_t left_out = 0;     ///< chunks before the prefix
  departure_counts before{}; ///< of host memory; read before `left_out` was known
};

/// The chunks of a prompt, and the turn of the session that has them.
struct turn_prefix {
  chunk_prefix chunks;
  hashed_turn turn;
};

/// What a verb wants of a session's prompt.
struct turn_parts {
  bool tail = false; ///< the tokens after the last whole chunk are a chunk, too
  bool rest =
      false; ///< without the first chunks that are known to be in host memory (index/known_prefix.hpp)
};

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes);

/// Does what `client_request::chunks` does, and a partial chunk may be without a session: for prompts that are named by all of their
/// tokens.
task<chunk_prefix> prompt_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix, bool leading = false);
/// The same for what is about to be stored or saved, see `client_request::tail`.
task<chunk_prefix> stored_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix);
/// A turn of a session: its tokens up to a base, and those that were sent. `prefix` names a session.
task<turn_prefix> turn_of_session(client_request& request, const client_space& opened,
                                  const wire::Prefix& prefix, turn_parts wanted);
/// The session, for a turn that ends at `tokens` (0: no turn).
task<session_use> used_session(client_request& request, session_id wanted, uint64_t tokens);
/// The session has the tokens of the turn, unless it has ended since. Refused with `gone` if another turn has changed it.
/// Returns why the session does not hold `hold`; empty: it does, or there is nothing to hold.
task<std::string> save_turn(client_request& request, const hashed_turn& turn,
                            std::optional<session_hold> hold);

} // namespace terrace::actors
