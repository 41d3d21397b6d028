// A conversation whose turns send only their new tokens. docs/sessions.md says which call belongs where.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
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
struct saved_session;

namespace detail {
class channel;
class core;
} // namespace detail

/// 128 unguessable bits: anyone who has the id may use the session within its trust group.
struct session_id {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const session_id&, const session_id&) = default;
  bool empty() const { return *this == session_id{}; }
};

enum class session_mode : uint8_t {
  tagged, ///< the session's KV may be evicted at any time
  held, ///< a saved turn stays in the tiers until the next one is saved, within a third of lease.host_percent
};

struct session_options {
  session_mode mode = session_mode::tagged;
  /// The session ends only by `admin::close_session` or by a bound, not with its connection or this handle.
  bool keep = false;
  std::string lora;          ///< as in `prefix`; applies to all turns
  std::string salt;          ///< as in `prefix`
  std::vector<uint8_t> seed; ///< parent of the first block, if the engine chooses its own; empty: the space's
};

/// The tokens of a session, as the daemon reported them. Another connection needs them, besides the id, to
/// continue the session.
struct session_point {
  uint64_t tokens = 0;
  digest last; ///< digest of all these tokens
  uint32_t digest_width = 0;
};

/// Its calls go through the connection that opened or adopted it, on that connection's thread. Closes its session on
/// destruction, without waiting, unless the session is kept.
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

  /// Opens a session with the first `tokens` of this one, or with fewer, up to the start of a chunk: see
  /// `tokens`.
  result<session> fork(uint64_t tokens, bool keep = false, deadline until = {}) const;

  /// Begins a turn: looks up `prompt`, whose first `unchanged` tokens are those of the session, and makes it
  /// the session's. Sends only what is new, or the whole prompt if the daemon does not know the session, or
  /// knows it with other tokens. `request` gives everything else; the items in its prefix are those of the
  /// whole prompt. If its prefix has a tail, the partial chunk at the end of the saved turn is found, too.
  result<lookup_result> lookup(std::span<const uint32_t> prompt, uint64_t unchanged,
                               lookup_request request = {}, deadline until = {});

  /// Ends a turn: makes `prompt`, with what the model has said, the session's. A held session holds what the
  /// tiers have of it, and releases what it held before. `items`: those of the whole prompt. Sends as little
  /// as `lookup` does.
  result<saved_session> save(std::span<const uint32_t> prompt, uint64_t unchanged,
                             std::span<const item> items = {}, const request_options& options = {},
                             deadline until = {});

  /// Ends a turn whose partial chunk is stored, too, in all pools and on all ranks. Its end is saved with it,
  /// and so are `cursors`, one for each pool or none; lookups that find this end return them. Error:
  /// `not_found` if an object of the partial chunk is missing; the session then stays at its last saved turn.
  result<saved_session> save_with_tail(std::span<const uint32_t> prompt, uint64_t unchanged,
                                       std::span<const uint64_t> cursors = {},
                                       std::span<const item> items = {}, const request_options& options = {},
                                       deadline until = {});

  /// Returns what a request sends of `prompt`, whose first `unchanged` tokens are those of the session: the
  /// rest, beginning at the last token that the session can continue. A store, reserve or load may only name
  /// chunks from there on, counted from the start of the prompt; `unchanged` is then at most the first token
  /// of its range. The result refers to `prompt` and to this handle.
  prefix continued(std::span<const uint32_t> prompt, uint64_t unchanged) const;

  /// Call it when a lookup or save of `continued` was answered: the session now has the tokens of its prompt.
  void moved(const lookup_result& found);
  void moved(const session_point& to) { at_ = to; }

  /// Closes the session without waiting. The handle of a kept session only lets go of it.
  void close();

 private:
  friend class connection;
  struct turn_end { ///< The turn to save.
    bool tail = false;
    std::span<const uint64_t> cursors;
  };
  static result<session> open(const std::shared_ptr<detail::core>& core, const space& where,
                              const session_options& options, deadline until);
  static session adopt(const std::shared_ptr<detail::core>& core, const space& where, const session_id& id,
                       const session_point& at, const session_options& options);
  result<saved_session> save_turn(std::span<const uint32_t> prompt, uint64_t unchanged, const turn_end& end,
                                  std::span<const item> items, const request_options& options,
                                  deadline until);
  template <class Send>
  auto continue_with(std::span<const uint32_t> prompt, uint64_t unchanged, std::span<const item> items,
                     deadline until, Send&& send) -> decltype(send(prefix()));
  void swap(session& other) noexcept;

  std::shared_ptr<detail::core> core_;
  std::shared_ptr<detail::channel> channel_; ///< on which it was opened
  session_id id_;
  space in_;
  uint32_t chunk_tokens_ = 1;
  session_options options_;
  session_point at_;
};

/// The KV that a session keeps after a turn.
struct saved_session {
  session_point at;
  uint32_t held_chunks = 0; ///< leading chunks; 0: nothing is held
  uint64_t held_bytes = 0;  ///< sum over all tiers
  lease_id lease;     ///< lease for reading what is held; belongs to the session. Empty: nothing is held
  std::string unheld; ///< why nothing is held although something was found
};

/// One of the daemon's sessions.
struct session_status {
  session_id session;
  connection_id connection{}; ///< its owner; 0: it has ended, and the session is kept
  uint32_t space = 0;
  bool keep = false;
  uint64_t generation = 0;       ///< grows with each turn
  uint64_t protected_tokens = 0; ///< tokens in whole chunks
  uint64_t committed_tokens = 0;
  uint64_t allocated_tokens = 0; ///< includes the tokens of a turn in progress
  uint64_t bytes = 0;            ///< bytes of the daemon's memory, counted as if nothing were shared
  session_mode mode = session_mode::tagged;
  uint64_t held_tokens = 0;
  uint64_t held_bytes = 0;   ///< sum over all tiers
  uint64_t saved_tokens = 0; ///< tokens of the last turn that was saved with its end; 0: none
  uint32_t tail_tokens = 0;  ///< the part of `saved_tokens` in a partial chunk
  /// Tokens that belong to the session alone: allocated ones, up to the end of a chunk, less protected ones.
  uint64_t own_tokens = 0;
};

struct sessions_status {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t evicted = 0;                 ///< sessions ended by a bound since the start
  std::vector<session_status> sessions; ///< the first 1,024
  uint64_t held = 0;                    ///< sessions that hold something
  uint64_t held_bytes = 0;              ///< bytes of host memory; an object counts once
};

} // namespace terrace::client
