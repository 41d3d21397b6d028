// Decides whose work is next: fairness between trust groups, and within a group between its connections.
#pragma once

#include "base/request_context.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace terrace {

/// Says what happened to an item that was offered its turn.
enum class turn : uint8_t {
  waits,
  served,
  ended, ///< the item was answered without being served: it leaves, and is not charged
};

/// A queue of work with costs (bytes, or bytes plus what a small piece costs beside its bytes). Work of one
/// connection is served in order of arrival; the connections of a group get equal shares of the cost, and so do
/// the groups, by deficit round robin (Shreedhar and Varghese, 1995) on two levels. Whoever does not wait needs
/// no share.
///
/// The bound: between the arrival of an item at the front of its connection's line and its turn, each other
/// group, and each other connection of its own group, is served for at most the item's cost, plus a quantum,
/// plus its own largest item.
///
/// `front` is what is served next. It stays the front until it is removed, so that work that must wait for
/// something else is not overtaken silently; `take_first` lets others pass it. A removal is O(n) in the
/// number of groups and of connections that wait, not in the number of items. Pure; one thread.
template <class Item>
class fair_queue {
 public:
  /// `quantum`: the cost that a connection may spend per round. It should exceed the cost of most items, so
  /// that a round serves each connection once.
  explicit fair_queue(uint64_t quantum = 1 << 20) : quantum_(quantum) {}
  fair_queue(fair_queue&&) noexcept = default;
  fair_queue& operator=(fair_queue&&) noexcept = default;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// The number of connections that wait.
  size_t flows() const {
    size_t count = 0;
    for (const group_line& group : groups_)
      count += group.flows.size();
    return count;
  }

  /// The number of items of one connection.
  size_t waiting_of(const flow& owner) const {
    for (const group_line& group : groups_)
      if (group.group == owner.group)
        if (auto line = group.lines.find(owner.connection); line != group.lines.end())
          return line->second->items.size();
    return 0;
  }

  void push(const flow& owner, Item item, uint64_t cost) {
    line_of(owner).items.push_back({std::move(item), cost});
    ++size_;
  }
  /// Puts back the rest of an item that was taken and served in part: it becomes the first of its connection
  /// again, at the end of the round.
  void push_front(const flow& owner, Item item, uint64_t cost) {
    line_of(owner).items.push_front({std::move(item), cost});
    ++size_;
  }

  /// Null if the queue is empty.
  Item* front() { return empty() ? nullptr : &front_line().items.front().item; }

  /// Removes the front and charges its cost. The queue must not be empty.
  Item pop() { return remove_front(true); }

  /// Removes the front without a charge, because it was not served.
  Item drop() { return remove_front(false); }

  /// Offers items their turn, about in the order of service: the first of each connection, then the second of each, and
  /// so on, `of_each` of each connection. `offer` (item, cost) returns a `turn`. Removes the first item that does not
  /// wait; if it was served, its connection is charged. Another item may be the front afterwards.
  template <class Offer>
  std::optional<Item> take_first(Offer&& offer, size_t of_each) {
    for (size_t place = 0, longest = 1; place < std::min(longest, of_each); ++place)
      for (auto group = groups_.begin(); group != groups_.end(); ++group)
        for (auto line = group->flows.begin(); line != group->flows.end(); ++line) {
          longest = std::max(longest, line->items.size());
          if (place >= line->items.size())
            continue;
          auto entry = line->items.begin() + static_cast<ptrdiff_t>(place);
          turn got = offer(entry->item, entry->cost);
          if (got == turn::waits)
            continue;
          Item taken = std::move(entry->item);
          if (got == turn::served)
            charge(*group, *line, entry->cost);
          line->items.erase(entry);
          removed(group, line);
          return taken;
        }
    return std::nullopt;
  }

  /// Removes all items for which `is` (item) is true.
  template <class Is>
  void erase_if(Is&& is) {
    for (auto group = groups_.begin(); group != groups_.end();) {
      for (auto line = group->flows.begin(); line != group->flows.end();) {
        size_ -= std::erase_if(line->items, [&](waiting& each) { return is(each.item); });
        if (line->items.empty()) {
          group->lines.erase(line->connection);
          line = group->flows.erase(line);
        } else {
          ++line;
        }
      }
      group = group->flows.empty() ? groups_.erase(group) : std::next(group);
    }
  }

  /// Visits items until `visit` (item) returns false: the front first, then in the order of `take_first`.
  template <class Visit>
  void for_each(Visit&& visit, size_t of_each) {
    if (front() == nullptr)
      return;
    for (size_t place = 0, longest = 1; place < std::min(longest, of_each); ++place)
      for (group_line& group : groups_)
        for (flow_line& line : group.flows) {
          longest = std::max(longest, line.items.size());
          if (place < line.items.size() && !visit(line.items[place].item))
            return;
        }
  }

 private:
  struct waiting {
    Item item;
    uint64_t cost = 0;
  };
  struct flow_line {
    uint64_t connection = 0;
    int64_t deficit = 0;  ///< the cost that may still be served in this round
    bool visited = false; ///< the line has been given its quantum for this round
    std::deque<waiting> items;
  };
  struct group_line {
    uint64_t group = 0;
    int64_t deficit = 0;
    bool visited = false;
    std::list<flow_line> flows; ///< the first is next
    std::unordered_map<uint64_t, typename std::list<flow_line>::iterator> lines;
  };
  using groups = std::list<group_line>;

  flow_line& line_of(const flow& owner) {
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const group_line& each) { return each.group == owner.group; });
    if (group == groups_.end()) {
      groups_.emplace_back();
      group = std::prev(groups_.end());
      group->group = owner.group;
    }
    auto [line, is_new] = group->lines.try_emplace(owner.connection);
    if (is_new) {
      group->flows.emplace_back();
      line->second = std::prev(group->flows.end());
      line->second->connection = owner.connection;
    }
    return *line->second;
  }

  static int64_t head_cost(const flow_line& line) { return static_cast<int64_t>(line.items.front().cost); }
  int64_t head_cost(group_line& group) { return head_cost(next_of(group.flows)); }

  /// Brings the line whose turn it is to the front of the ring: the first that can pay for its first item.
  template <class Line>
  Line& next_of(std::list<Line>& ring) {
    auto quantum = static_cast<int64_t>(quantum_);
    while (true) {
      // Rounds in which nobody could be served are skipped.
      int64_t rounds = INT64_MAX;
      for (Line& each : ring) {
        int64_t lacks = head_cost(each) - each.deficit - (each.visited ? 0 : quantum);
        rounds = std::min(rounds, lacks <= 0 ? 0 : (lacks + quantum - 1) / quantum);
      }
      for (Line& each : ring)
        each.deficit += rounds * quantum;
      for (size_t n = ring.size(); n != 0; --n) {
        Line& first = ring.front();
        if (!std::exchange(first.visited, true))
          first.deficit += quantum;
        if (first.deficit >= head_cost(first))
          return first;
        first.visited = false;
        ring.splice(ring.end(), ring, ring.begin());
      }
    }
  }

  flow_line& front_line() { return next_of(next_of(groups_).flows); }

  static void charge(group_line& group, flow_line& line, uint64_t cost) {
    group.deficit -= static_cast<int64_t>(cost);
    line.deficit -= static_cast<int64_t>(cost);
  }

  Item remove_front(bool charged) {
    assert(!empty());
    flow_line& line = front_line();
    Item taken = std::move(line.items.front().item);
    if (charged)
      charge(groups_.front(), line, line.items.front().cost);
    line.items.pop_front();
    removed(groups_.begin(), groups_.front().flows.begin());
    return taken;
  }

  /// A line that has become empty leaves the ring, and loses the cost that it had saved or owed.
  void removed(typename groups::iterator group, typename std::list<flow_line>::iterator line) {
    --size_;
    if (!line->items.empty())
      return;
    group->lines.erase(line->connection);
    group->flows.erase(line);
    if (group->flows.empty())
      groups_.erase(group);
  }

  uint64_t quantum_;
  groups groups_;
  size_t size_ = 0;
};

} // namespace terrace
