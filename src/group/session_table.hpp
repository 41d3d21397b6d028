// The sessions of a trust group by id, within bounds.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "group/session_id.hpp"
#include "group/session_lengths.hpp"
#include "group/session_state.hpp"
#include "group/tail_book.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

struct session_bounds {
  size_t sessions_max = 131'072;      ///< of the trust group
  uint64_t bytes_max = 256ULL << 20;  ///< of all of them
  size_t owner_sessions_max = 32'768; ///< of one connection
  uint64_t owner_bytes_max = 64ULL << 20;
};

struct session_opening {
  session_id id;
  connection_id owner{};
  space_id in{};
  uint32_t chunk_tokens = 1; ///< of the space
  bool keep = false;         ///< it outlives its owner
  bool held = false;         ///< it is to hold its chunks between turns
  session_root_ptr root;     ///< may be null
  session_state_ptr state;   ///< null: nothing yet
};

/// What a turn starts from. `generation` changes with every turn that finishes.
struct session_use {
  space_id in{};
  uint64_t generation = 0;
  session_root_ptr root;
  session_state_ptr state;
  bool held = false;
  saved_turn_ptr saved;     ///< its last saved turn; null: none
  uint32_t held_chunks = 0; ///< the first ones, which it holds in host memory; set by who knows that
};

/// What became of the state that a turn leaves.
enum class turn_outcome : uint8_t {
  saved,
  closed, ///< the session ended while the turn ran, which changes nothing for the turn
  late,   ///< another turn has finished since this one began: the session has that one's tokens
};

struct session_report {
  session_id id;
  connection_id owner{}; ///< 0: it has ended, and the session is kept
  space_id in{};
  bool keep = false;
  uint64_t generation = 0;
  session_lengths lengths;
  uint64_t bytes = 0;
  bool held = false;       ///< its mode
  saved_turn_ptr saved;    ///< its last saved turn; null: none, or it was saved without its end
  uint64_t own_tokens = 0; ///< what belongs to it alone, see session_lengths
};

/// A session belongs to the connection that opened it, and ends with it unless it is kept. Over a bound the least
/// recently used sessions end: first, for the bounds of an owner, its own; then those whose owner has ended; then those of
/// the owner with the most bytes. A client whose session has ended sends its whole prompt once, so ending one is never an
/// error. Memory that sessions share counts for each of them. Not thread-safe; owned by one actor.
class session_table {
 public:
  explicit session_table(const session_bounds& most = {}) : most_(most) {}

  /// The id is new. If the state has a saved turn, it is the session's; `tail`: to its tail.
  void open(session_opening what, tail_reference tail = {});

  /// For a turn that will end at `tokens`. 0: it is only looked at. Error: `gone`.
  result<session_use> use(const session_id& id, uint64_t tokens);

  /// A turn that began with `generation` has finished.
  turn_outcome save(const session_id& id, uint64_t generation, session_state_ptr after);

  /// The same for a turn that is saved with its end, which is in `after`, or without: what was saved before ends. `tail`: to
  /// the new tail, if there is one.
  turn_outcome save_end(const session_id& id, uint64_t generation, session_state_ptr after,
                        tail_reference tail);

  /// False: there is none, which is no error.
  bool close(const session_id& id);

  /// Its sessions end; kept ones have no owner any more.
  void end(connection_id owner);

  size_t size() const { return by_id_.size(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t evicted() const { return evicted_; } ///< ended over a bound, since the start

  /// Held sessions that have ended, for whatever reason, since the last call: who has what they hold lets it go.
  std::vector<session_id> take_ended() { return std::exchange(ended_, {}); }

  // ---- checks (session_recount.cpp) ----

  enum class recount : uint8_t {
    more,
    done,
    interrupted, ///< many sessions changed owner: it has to begin again
  };
  /// All sessions are counted again in steps, between which the table may change; replaces one that has not ended.
  void begin_recount();
  /// Counts so many more. Differences from what the table keeps: a sentence for each.
  recount recount_step(size_t sessions_max, std::vector<std::string>& differences);
  /// References to tails that the last recount found; valid right after it is done.
  uint64_t recounted_tails() const { return recounted_tails_; }

  /// Whether there is one of this mode.
  bool has_held(const session_id& id) const {
    auto found = by_id_.find(id);
    return found != by_id_.end() && found->second->what.held;
  }

  /// The most recently used ones of each owner, up to `count_max` in all.
  std::vector<session_report> list(size_t count_max) const;

  /// Of one session; empty: there is none.
  std::vector<session_report> one(const session_id& id) const;

 private:
  friend struct damaged_sessions; ///< tests break it
  struct session {
    session_opening what;
    uint64_t generation = 1;
    session_lengths lengths;
    uint64_t bytes = 0;
    saved_turn_ptr saved;
    tail_reference tail;  ///< of the saved turn
    uint64_t counted = 0; ///< by the recount with this number
  };
  struct owned {
    std::list<session> sessions; ///< the least recently used one first
    uint64_t bytes = 0;
  };
  using place = std::list<session>::iterator;
  static constexpr connection_id nobody{}; ///< owns the kept sessions of connections that have ended

  /// Of one session, besides its state: its places in the list and in the index.
  static constexpr uint64_t entry_bytes =
      sizeof(session) + 2 * sizeof(void*) + sizeof(session_id) + sizeof(place) + 4 * sizeof(void*);

  static session_report report_of(const session& one);
  /// The walk of a recount goes from owner to owner.
  struct recounting {
    explicit recounting(uint64_t its_number) : number(its_number) {}
    uint64_t number;
    bool begun = false;      ///< `owner` is set
    connection_id owner{};   ///< whose sessions are being counted
    std::optional<place> at; ///< the next one; none: continue with the next owner
    struct sum {
      uint64_t sessions = 0;
      uint64_t bytes = 0;
      uint64_t tails = 0; ///< references
    };
    std::map<connection_id, sum> counted;
    std::vector<std::string> differences;
  };
  void count_again(place at);  ///< unless it was
  void step_over(place at);    ///< it leaves its place
  void forget_count(place at); ///< it ends
  /// Of the saved turn; counted once more or less if the session was counted.
  void replace_tail(place at, tail_reference tail);
  void compare_recount(std::vector<std::string>& differences);

  void touch(place at);
  void count(place at);
  void erase(place at);
  void forget(const session& ends);
  void evict_from(owned& from);
  void keep_bounds(connection_id owner);

  session_bounds most_;
  std::map<connection_id, owned> owners_;
  std::unordered_map<session_id, place> by_id_;
  uint64_t bytes_ = 0;
  uint64_t evicted_ = 0;
  std::vector<session_id> ended_;
  std::optional<recounting> recount_;
  uint64_t recounts_ = 0;
  uint64_t recounted_tails_ = 0;
};

} // namespace terrace
