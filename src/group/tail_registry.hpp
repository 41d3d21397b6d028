// Counts the references to the partial chunks of a trust group. Only sessions and prompt entries refer to
// them.
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"
#include "index/space_registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

namespace terrace {

/// The kinds of references to a tail.
enum class tail_referrer : uint8_t {
  session, ///< a session's last saved turn has it as its tail
  prompt,  ///< a prompt entry has it as its tail
  store,   ///< a connection has stored it for a turn or prompt that is not saved yet
};
constexpr size_t tail_referrers = 3;

class tail_registry;

struct tail_name {
  space_id space{};
  digest key;
  friend auto operator<=>(const tail_name&, const tail_name&) = default;
};

/// A tail with at least one reference.
struct referred_tail {
  tail_registry* book = nullptr;
  space_ptr space;
  std::array<uint64_t, tail_referrers> references{};
};

/// One reference to a tail; it ends with the object. Move-only; the book outlives it.
class tail_reference {
 public:
  tail_reference() = default;
  tail_reference(tail_reference&& other) noexcept { swap(other); }
  tail_reference& operator=(tail_reference&& other) noexcept {
    tail_reference old(std::move(*this));
    swap(other);
    return *this;
  }
  ~tail_reference();

  explicit operator bool() const { return to_ != nullptr; }
  /// Precondition: the object refers to a tail.
  const digest& key() const { return to_->first.key; }

 private:
  friend class tail_registry;
  using named_tail = std::pair<const tail_name, referred_tail>;
  tail_reference(named_tail& to, tail_referrer by) : to_(&to), by_(by) {}
  void swap(tail_reference& other) noexcept {
    std::swap(to_, other.to_);
    std::swap(by_, other.by_);
  }

  named_tail* to_ =
      nullptr; ///< node in the book, which keeps it in place; null: none. Every session has a member of this
               ///< type, so it is small.
  tail_referrer by_{};
};

/// A tail without references.
struct unreferred_tail {
  space_ptr space;
  digest key;
};

/// Equal tails of equal prompts are stored once: any number of forks share one. Not thread-safe; owned by one
/// actor.
class tail_registry {
 public:
  static constexpr size_t unreferred_max =
      4'096; ///< tails that wait to be removed; others stay until they are evicted

  tail_registry() = default;
  tail_registry(const tail_registry&) = delete;
  tail_registry& operator=(const tail_registry&) = delete;

  tail_reference refer(const space_ptr& space, const digest& key, tail_referrer by);

  bool referred(space_id space, const digest& key) const { return tails_.contains({space, key}); }
  size_t size() const { return tails_.size(); } ///< number of tails with references
  uint64_t references(tail_referrer by) const { return references_[static_cast<size_t>(by)]; }
  /// Number of references to one tail.
  uint64_t references(space_id space, const digest& key, tail_referrer by) const {
    auto known = tails_.find({space, key});
    return known == tails_.end() ? 0 : known->second.references[static_cast<size_t>(by)];
  }

  /// Returns the next tail without references, and skips those that are referred to again; `in` is null if
  /// there is none.
  unreferred_tail next_unreferred();

 private:
  friend class tail_reference;
  void end(tail_reference::named_tail& one, tail_referrer by);

  std::map<tail_name, referred_tail> tails_;
  std::array<uint64_t, tail_referrers> references_{};
  std::deque<unreferred_tail> unreferred_;
};

inline tail_reference::~tail_reference() {
  if (to_ != nullptr)
    to_->second.book->end(*to_, by_);
}

// Partial chunks that connections have stored, or are storing, for turns that are not saved yet.
//
// Pure: used by one thread at a time.

/// Keeps a reference to each tail from its first store to the save that takes it over, so that it stays when
/// another session gives up an equal tail meanwhile. The reference ends without a save when its connection
/// ends or stores too many others.
class stored_tails {
 public:
  static constexpr size_t of_connection_max = 1'024;

  /// `tails` outlives it.
  explicit stored_tails(tail_registry& tails) : tails_(&tails) {}

  /// The connection stores the tail. If several connections store it, it belongs to the last one.
  void add(connection_id owner, const space_ptr& space, const digest& key);

  /// The tail was saved, no matter by whom.
  void saved(space_id space, const digest& key);

  /// Forgets what the connection has stored and not saved.
  void end(connection_id owner);

  size_t size() const { return by_key_.size(); }

 private:
  using name = std::pair<space_id, digest>;
  struct stored {
    name what;
    tail_reference reference;
  };
  using line = std::list<stored>; ///< tails of one connection, oldest first
  struct place {
    connection_id owner{};
    line::iterator at;
  };
  void remove(std::map<name, place>::iterator known);

  tail_registry* tails_;
  std::map<name, place> by_key_;
  std::unordered_map<connection_id, line> by_owner_;
};

} // namespace terrace
