// Searches for idle spaces to forget when a trust group has too many.
//
// Pure: a connection asks the group and the tiers, and passes their answers to this class. Used by one thread
// at a time.
#pragma once

#include "group/group_messages.hpp"
#include "tier/messages.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>
#include <vector>

namespace terrace {

/// The group names idle spaces part by part; a space without objects in any tier can be forgotten. The tiers
/// are asked from fastest to slowest, so that an object which moves down meanwhile is not missed: it is in
/// the lower tier before it leaves the upper one.
class idle_space_search {
 public:
  /// True once every idle space has been looked at.
  bool looked_at_all() const { return looked_at_all_; }

  /// Starts with the part that the group has named. Returns false if every space has been looked at.
  bool apply(const idle_spaces_answer& named);

  /// Returns the number of the tier to ask next; nullopt if all have answered or no space is left.
  std::optional<size_t> next_tier(size_t tiers);
  empty_spaces_request question() const;
  void apply(const empty_spaces_answer& answer);

  /// The spaces of the part that have no object in any tier asked so far.
  const std::vector<idle_space>& empty() const { return empty_; }

 private:
  size_t looked_ = 0; ///< idle spaces looked at so far
  bool looked_at_all_ = false;
  std::vector<idle_space> empty_; ///< sorted by id
  size_t next_tier_ = 0;
};

inline bool idle_space_search::apply(const idle_spaces_answer& named) {
  if (named.idle.empty() || looked_ >= named.known)
    return false;
  looked_ += named.idle.size();
  looked_at_all_ = named.idle.size() < empty_spaces_request::spaces_max;
  empty_ = named.idle;
  std::sort(empty_.begin(), empty_.end(),
            [](const idle_space& a, const idle_space& b) { return a.id < b.id; });
  next_tier_ = 0;
  return true;
}

inline std::optional<size_t> idle_space_search::next_tier(size_t tiers) {
  if (empty_.empty() || next_tier_ == tiers)
    return std::nullopt;
  return next_tier_++;
}

inline empty_spaces_request idle_space_search::question() const {
  assert(empty_.size() <= empty_spaces_request::spaces_max);
  empty_spaces_request request;
  for (const idle_space& one : empty_)
    request.of.push_back(one.id);
  return request;
}

inline void idle_space_search::apply(const empty_spaces_answer& answer) {
  std::erase_if(empty_, [&](const idle_space& one) {
    return !std::binary_search(answer.empty.begin(), answer.empty.end(), one.id);
  });
}

} // namespace terrace
