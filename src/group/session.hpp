// A session between its turns: the tokens that it has, its generation, and what it holds.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "group/group_messages.hpp"
#include "group/session_id.hpp"
#include "group/session_state.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace terrace {

// How many tokens of a session are protected, committed and allocated.

/// Counted in tokens from the start of the prompt: protected <= committed <= allocated.
class session_lengths {
 public:
  /// Whole chunks, whose KV belongs to the index of the tiers.
  uint64_t protected_tokens() const { return protected_; }
  /// Valid tokens: those that the last finished turn left.
  uint64_t committed_tokens() const { return committed_; }
  /// Includes the tokens of the turn in progress.
  uint64_t allocated_tokens() const { return allocated_; }

  bool operator==(const session_lengths&) const = default;

  /// Tokens that belong to the session alone, in whole chunks.
  uint64_t held_tokens(uint32_t chunk_tokens) const {
    return (allocated_ + chunk_tokens - 1) / chunk_tokens * chunk_tokens - protected_;
  }

  /// Begins a turn that will end at `tokens`. An earlier turn that did not finish is forgotten.
  void begin(uint64_t tokens) {
    allocated_ = std::max(committed_, tokens);
    check();
  }
  /// Finishes a turn: the session now has `tokens`, which may be more or fewer than before.
  void commit(uint64_t tokens, uint32_t chunk_tokens) {
    assert(chunk_tokens > 0);
    protected_ = tokens / chunk_tokens * chunk_tokens;
    committed_ = allocated_ = tokens;
    check();
  }

 private:
  void check() const { assert(protected_ <= committed_ && committed_ <= allocated_); }

  uint64_t protected_ = 0, committed_ = 0, allocated_ = 0;
};

/// The state that a turn starts from. `generation` changes with every turn that finishes.
struct session_use {
  space_id space{};
  uint64_t generation = 0;
  session_root_ptr root;
  session_state_ptr state;
  bool held = false;
  saved_turn_ptr saved;     ///< its last saved turn; null: none
  uint32_t held_chunks = 0; ///< leading chunks that the session holds in host memory
};

/// A held session keeps a lease between its turns.
struct session_hold {
  lease_ptr lease;          ///< a lease without a connection; null: nothing is held
  uint64_t host_bytes = 0;  ///< physical bytes
  uint64_t bytes_max = 0;   ///< limit of host memory for all sessions together
  uint32_t host_chunks = 0; ///< leading chunks of `what` that it holds in host memory
};

/// A turn leaves a state, and its session takes it or not.
enum class turn_outcome : uint8_t {
  saved,
  closed, ///< the session ended while the turn ran; the turn itself is not affected
  late,   ///< another turn has finished since this one began, and the session keeps that one's tokens
};

/// Begins a turn that will end at `tokens`. 0: only looks at the session.
struct use_session_request {
  uint64_t tokens = 0;
};
struct use_session_answer {
  error failure;
  session_use found;
};

/// Finishes the turn that began with `generation`.
struct save_session_request {
  uint64_t generation = 0;
  /// If `hold` is given and the turn is saved with its end, this state's saved turn becomes the session's.
  session_state_ptr after;
  /// The session holds this from now on; none: the turn was only a lookup, and the saved turn stays.
  std::optional<session_hold> hold;
};
struct save_session_answer {
  error failure; ///< always `ok`: the fate of the turn is in `outcome`
  turn_outcome outcome = turn_outcome::saved;
  std::string unheld; ///< the reason why the session does not hold the lease; empty: it holds it
};

/// A group knows this of a session that has an actor, since the session's last use.
struct session_facts {
  space_id space{};
  uint32_t chunk_tokens = 1;
  bool held = false; ///< the session's mode
  uint64_t generation = 0;
  session_lengths lengths;
  uint64_t state_bytes = 0;
  saved_turn_ptr saved; ///< the last saved turn; null: there is none
  bool operator==(const session_facts&) const = default;
};

/// A session reports that a turn has begun. The group answers in its place, because it keeps the order of use.
struct session_used {
  session_id id;
  session_facts now;
  session_use found;
};

/// A session reports that a turn has finished and was saved. The group answers in its place.
struct session_saved {
  session_id id;
  session_facts now;
  bool with_end = false; ///< its saved turn and what it holds have changed, too
  session_hold hold;     ///< what it holds now; `what` is null if it holds nothing
  lease_ptr before;      ///< what it held before; null: nothing
  std::string unheld;    ///< why it does not hold what it was given
};

/// Its actor owns it. While the session is parked, it has no actor, and its group keeps it as a value. The caller
/// adds the id to the reports.
class session {
 public:
  /// `state`: null if the session has no tokens yet. If it has a saved turn, that becomes the session's.
  session(space_id space, uint32_t chunk_tokens, bool held, session_root_ptr root, session_state_ptr state);

  /// Begins a turn that will end at `tokens`. 0: the session is only read.
  session_used use(uint64_t tokens);

  /// Finishes the turn that began with the request's generation. Returns nothing if it is late, and then nothing
  /// has changed.
  std::optional<session_saved> save(save_session_request request);

  /// From now on the session holds nothing. Returns what it held, or null.
  lease_ptr end_hold();

  session_facts facts() const {
    return {in_, chunk_tokens_, held_, generation_, lengths_, state_->bytes(), saved_};
  }

 private:
  struct hold {
    lease_ptr lease;
    uint32_t host_chunks = 0; ///< leading chunks that are held in host memory
  };

  void keep(session_hold given, session_saved& report);

  space_id in_{};
  uint32_t chunk_tokens_ = 1;
  bool held_ = false;
  session_root_ptr root_;
  session_state_ptr state_;
  uint64_t generation_ = 1;
  session_lengths lengths_;
  saved_turn_ptr saved_;
  std::shared_ptr<const hold> hold_; ///< null: nothing; most sessions hold nothing
};

} // namespace terrace
