// The sessions that have an actor, in the order of their last use.
#pragma once

#include "group/session_id.hpp"

#include <cassert>
#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace terrace {

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

} // namespace terrace
