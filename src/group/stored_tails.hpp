// Partial chunks that connections have stored, or are storing, for turns that are not saved yet.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/ids.hpp"
#include "group/tail_book.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

namespace terrace {

/// Keeps a reference to each tail from its first store to the save that takes it over, so that it stays when
/// another session gives up an equal tail meanwhile. The reference ends without a save when its connection
/// ends or stores too many others.
class stored_tails {
 public:
  static constexpr size_t of_connection_max = 1'024;

  /// `tails` outlives it.
  explicit stored_tails(tail_book& tails) : tails_(&tails) {}

  /// The connection stores the tail. If several connections store it, it belongs to the last one.
  void add(connection_id owner, const space_ptr& in, const digest& key);

  /// The tail was saved, no matter by whom.
  void saved(space_id in, const digest& key);

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

  tail_book* tails_;
  std::map<name, place> by_key_;
  std::unordered_map<connection_id, line> by_owner_;
};

} // namespace terrace
