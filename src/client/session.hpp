// A conversation: its turns send only their new tokens. docs/sessions.md says which call belongs where.
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"
#include "client/types.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace terrace::client {

class connection;
struct lookup_result;

namespace detail {
class channel;
} // namespace detail

/// 128 unguessable bits: whoever has it may use the session within its trust group.
struct session_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const session_id&, const session_id&) = default;
  bool empty() const { return *this == session_id{}; }
};

enum class session_mode : uint8_t {
  tagged, ///< its KV can be evicted at any time
  held, ///< what it has when a turn is saved stays in the tiers until the next one is, within lease.session_percent
};

struct session_options {
  session_mode mode = session_mode::tagged;
  bool keep =
      false; ///< it does not end with its connection or this handle, only by `close_session` or a bound
  std::string lora;          ///< as in `prefix`, for all turns
  std::string salt;          ///< as in `prefix`
  std::vector<uint8_t> seed; ///< parent of the first block, if the engine derives its own; empty: the space's
};

/// What a session has, as the daemon told it. Another connection needs it, besides the id, to continue the session.
struct session_point {
  uint64_t tokens = 0;
  digest last; ///< of all these tokens
  uint32_t digest_width = 0;
};

/// Closes its session on destruction, without waiting, unless it is kept. Used on the thread of its connection.
class session {
 public:
  session() = default;
  session(session&& other) noexcept { swap(other); }
  session& operator=(session&& other) noexcept {
    swap(other);
    return *this;
  }
  ~session() { close(); }

  explicit operator bool() const { return !id_.empty(); }
  const session_id& id() const { return id_; }
  const space& in() const { return in_; }
  uint64_t tokens() const { return at_.tokens; }
  const session_point& at() const { return at_; }

  /// What a request sends of `prompt`, whose first `unchanged` tokens are those of the session: the rest, beginning at the
  /// last token that the session can continue. A store, reserve or load names chunks from there on alone, counted from the
  /// start of the prompt: `unchanged` is then at most the first token of its range. Refers to `prompt` and to this handle.
  prefix continued(std::span<const uint32_t> prompt, uint64_t unchanged) const;

  /// A lookup or a save of `continued` was answered: the session has the tokens of its prompt.
  void moved(const lookup_result& found);
  void moved(const session_point& to) { at_ = to; }

  /// Without waiting. A kept session is only let go.
  void close();

 private:
  friend class connection;
  void swap(session& other) noexcept;

  std::shared_ptr<detail::channel> channel_;
  session_id id_;
  space in_;
  uint32_t chunk_tokens_ = 1;
  session_options options_;
  session_point at_;
};

/// What a session keeps after a turn.
struct saved_session {
  session_point at;
  uint32_t held_chunks = 0; ///< leading ones; 0: nothing is held
  uint64_t held_bytes = 0;  ///< in all tiers
  lease_id lease; ///< under which what is held can be read; belongs to the session. Empty: nothing is held
  std::string unheld; ///< why nothing is held although something was found
};

/// One of the daemon's sessions.
struct session_status {
  session_id session;
  connection_id connection{}; ///< its owner; 0: it has ended, and the session is kept
  uint32_t space = 0;
  bool keep = false;
  uint64_t generation = 0;       ///< grows with each turn
  uint64_t protected_tokens = 0; ///< in whole chunks
  uint64_t committed_tokens = 0;
  uint64_t allocated_tokens = 0; ///< including those of a turn in progress
  uint64_t bytes = 0;            ///< of the daemon's memory, as if it shared nothing
  session_mode mode = session_mode::tagged;
  uint64_t held_tokens = 0;
  uint64_t held_bytes = 0;   ///< in all tiers
  uint64_t saved_tokens = 0; ///< of the last turn that was saved with its end; 0: none
  uint32_t tail_tokens = 0;  ///< of these, in a partial chunk
  uint64_t own_tokens =
      0; ///< what belongs to the session alone: allocated, up to the end of a chunk, less protected
};

struct sessions_status {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;                 ///< over a bound, since the start
  std::vector<session_status> sessions; ///< the first 1,024
  uint64_t held = 0;                    ///< sessions that hold something
  uint64_t held_bytes = 0;              ///< of host memory, an object once
};

} // namespace terrace::client
