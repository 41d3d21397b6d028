// The sessions of a trust group by id, within bounds. A session that has an actor is owned by it; the table keeps
// the others as values.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "group/session.hpp"
#include "group/session_id.hpp"
#include "group/tail_registry.hpp"

#include <cassert>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

// The sessions that have an actor, in the order of their last use.

/// `Actor` is the handle of a session's actor. Used by one thread at a time.
template <class Actor>
class active_sessions {
 public:
  explicit active_sessions(size_t actors_max) : actors_max_(actors_max) {}

  /// Null: the session has no actor.
  const Actor* find(const session_id& id) const {
    auto known = by_id_.find(id);
    return known == by_id_.end() ? nullptr : &known->second.actor;
  }
  /// Precondition: the session has no actor.
  void add(const session_id& id, Actor actor) {
    assert(order_.size() <= actors_max_ && !by_id_.contains(id));
    by_id_.emplace(id, entry{std::move(actor), order_.insert(order_.end(), id)});
  }
  void touch(const session_id& id) {
    if (auto known = by_id_.find(id); known != by_id_.end() && known->second.at)
      order_.splice(order_.end(), order_, *known->second.at);
  }
  void erase(const session_id& id) {
    auto known = by_id_.find(id);
    if (known == by_id_.end())
      return;
    if (known->second.at)
      order_.erase(*known->second.at);
    by_id_.erase(known);
  }
  /// Returns the least recently used session beyond the bound, each only once; it is about to be parked.
  std::optional<session_id> excess() {
    if (order_.size() <= actors_max_)
      return std::nullopt;
    session_id coldest = order_.front();
    order_.pop_front();
    by_id_.at(coldest).at.reset();
    return coldest;
  }

  size_t size() const { return by_id_.size(); }
  auto begin() const { return by_id_.begin(); }
  auto end() const { return by_id_.end(); }

 private:
  struct entry {
    Actor actor;
    std::optional<std::list<session_id>::iterator> at; ///< none: it is about to be parked
  };

  size_t actors_max_;
  std::list<session_id> order_; ///< least recently used first
  std::unordered_map<session_id, entry> by_id_;
};

struct session_bounds {
  size_t sessions_max = 131'072;      ///< sessions of the trust group
  uint64_t bytes_max = 256ULL << 20;  ///< bytes of all sessions
  size_t owner_sessions_max = 32'768; ///< sessions of one connection
  uint64_t owner_bytes_max = 64ULL << 20;
  size_t active_max = 1'024; ///< sessions of the trust group that have an actor
};

struct session_opening {
  session_id id;
  connection_id owner{};
  space_id space{};
  uint32_t chunk_tokens = 1; ///< tokens per chunk of the space
  bool keep = false;         ///< the session outlives its owner
  bool held = false;         ///< the session holds its chunks between turns
  session_root_ptr root;     ///< may be null
  session_state_ptr state;   ///< null: the session has no tokens yet
};

struct session_report {
  session_id id;
  connection_id owner{}; ///< 0: the owner has ended, and the session is kept
  space_id space{};
  bool keep = false;
  uint64_t generation = 0;
  session_lengths lengths;
  uint64_t bytes = 0;
  bool held = false;       ///< the session's mode
  saved_turn_ptr saved;    ///< its last saved turn; null: there is none, or it was saved without its end
  uint64_t own_tokens = 0; ///< tokens that belong to it alone, see session_lengths
};

/// A session belongs to the connection that opened it, and ends with it unless it is kept. When a bound is
/// exceeded, the least recently used sessions end: for the bounds of an owner, the owner's own; for the
/// others, first those whose owner has ended, then those of the owner with the most bytes. A client whose
/// session has ended sends its whole prompt once, so ending one is never an error. Memory that sessions share
/// counts for each of them. Not thread-safe; owned by one actor.
class session_table {
 public:
  explicit session_table(const session_bounds& most = {}) : most_(most) {}

  /// The session is parked. Precondition: the id is new. `tail` refers to the tail of its saved turn, if it
  /// has one.
  void open(const session_opening& opening, tail_reference tail = {});

  bool has(const session_id& id) const { return by_id_.contains(id); }

  /// Gives the session to an actor. Precondition: it is parked.
  session take(const session_id& id);

  /// Takes the session back from its actor. Returns false if it has ended meanwhile.
  bool park(const session_id& id, session& turns);

  /// Null: it has an actor, or there is no such session.
  session* parked(const session_id& id);

  /// Its actor says that a turn has begun. Returns false if the session has ended meanwhile.
  bool used(const session_id& id, session_facts now);

  /// Its actor says that a turn has finished.
  bool saved(const session_id& id, session_facts now);

  /// The same for a turn that was saved with its end, if `now` has a saved turn, or without; what was saved
  /// before ends. `tail` refers to the new tail, if there is one.
  bool saved_end(const session_id& id, session_facts now, tail_reference tail);

  /// Returns false if there is no such session, which is no error.
  bool close(const session_id& id);

  /// Ends the owner's sessions; kept ones lose their owner.
  void end(connection_id owner);

  size_t size() const { return by_id_.size(); }
  size_t active() const { return active_; } ///< sessions that have an actor
  uint64_t bytes() const { return bytes_; }
  uint64_t evicted() const { return evicted_; } ///< sessions ended by a bound since the start

  struct ended_session {
    session_id id;
    std::optional<session> parked; ///< none: its actor has it
  };
  /// Returns those sessions that have ended since the last call, for whatever reason, and are held or have an
  /// actor. The caller releases what they hold, and ends the actors.
  std::vector<ended_session> take_ended() { return std::exchange(ended_, {}); }

  // ---- checks (session_recount.cpp) ----

  enum class recount : uint8_t {
    more,
    done,
    interrupted, ///< many sessions changed their owner, so the recount has to begin again
  };
  /// Begins to recount all sessions in steps. The table may change between steps. A recount that is still
  /// running is replaced.
  void begin_recount();
  /// Counts up to `sessions_max` further sessions. Adds a sentence for each difference from the table's
  /// totals.
  recount recount_step(size_t sessions_max, std::vector<std::string>& differences);
  /// References to tails that the last recount found; valid right after it is done.
  uint64_t recounted_tails() const { return recounted_tails_; }

  /// True if the session exists and its mode is held.
  bool has_held(const session_id& id) const {
    auto found = by_id_.find(id);
    return found != by_id_.end() && found->second->facts().held;
  }

  /// Lists the most recently used sessions of each owner, up to `count_max` in all.
  std::vector<session_report> list(size_t count_max) const;

  /// Lists one session; empty if there is none.
  std::vector<session_report> one(const session_id& id) const;

 private:
  friend struct damaged_sessions; ///< tests damage it
  struct entry {
    session_id id;
    connection_id owner{};
    bool keep = false;
    uint32_t counted = 0; ///< number of the recount that counted it last
    uint64_t bytes = 0;
    tail_reference tail;                 ///< tail of the saved turn
    std::optional<session> parked;       ///< none: its actor has it
    std::unique_ptr<session_facts> told; ///< null: it is parked
    session_facts facts() const { return parked ? parked->facts() : *told; }
  };
  struct owned {
    std::list<entry> sessions; ///< least recently used first
    uint64_t bytes = 0;
  };
  using place = std::list<entry>::iterator;
  static constexpr connection_id nobody{}; ///< owns the kept sessions of connections that have ended

  /// Bytes of one session besides its state: its places in the list and in the index.
  static constexpr uint64_t entry_bytes =
      sizeof(entry) + 2 * sizeof(void*) + sizeof(session_id) + sizeof(place) + 4 * sizeof(void*);

  static session_report report_of(const entry& one);
  /// The walk of a recount. It goes from owner to owner.
  struct recounting {
    explicit recounting(uint32_t its_number) : number(its_number) {}
    uint32_t number;
    bool begun = false;      ///< true once `owner` is set
    connection_id owner{};   ///< whose sessions are being counted
    std::optional<place> at; ///< the next session; none: continue with the next owner
    struct sum {
      uint64_t sessions = 0;
      uint64_t bytes = 0;
      uint64_t tails = 0; ///< references to tails
    };
    std::map<connection_id, sum> counted;
    std::vector<std::string> differences;
  };
  void count_again(place at);  ///< counts the session unless this recount has done so
  void step_over(place at);    ///< called when the session leaves its place
  void forget_count(place at); ///< called when the session ends
  /// Replaces the saved turn's reference, and corrects the sum of the recount if it has counted the session.
  void replace_tail(place at, tail_reference tail);
  void compare_recount(std::vector<std::string>& differences);

  void touch(place at);
  void count(place at);
  void count_saved(place at);
  void erase(place at);
  void forget(entry& ends);
  void evict_from(owned& from);
  void keep_bounds(connection_id owner);

  session_bounds most_;
  std::map<connection_id, owned> owners_;
  std::unordered_map<session_id, place> by_id_;
  uint64_t bytes_ = 0;
  uint64_t evicted_ = 0;
  size_t active_ = 0;
  std::vector<ended_session> ended_;
  std::optional<recounting> recount_;
  uint32_t recounts_ = 0;
  uint64_t recounted_tails_ = 0;
};

} // namespace terrace
