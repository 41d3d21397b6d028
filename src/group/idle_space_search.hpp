// The search for idle spaces that can be forgotten, when a trust group has too many.
//
// Pure: a connection asks the group and the tiers, and passes their answers to this class. Used by one thread at a time.
#pragma once

#include "group/group_messages.hpp"
#include "tier/tier_spaces.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace terrace {

/// The group names idle spaces, a part at a time; those of which no tier has an object can be forgotten. Tiers are asked
/// in order, fastest first: an object that leaves one for a tier below is there before.
class idle_space_search {
 public:
  /// True: there are no idle spaces that were not looked at.
  bool looked_at_all() const { return looked_at_all_; }

  /// Begins with the part that the group names. False: all were looked at.
  bool take(const idle_spaces_answer& named);

  /// The number of the tier to ask next; nullopt: all have answered, or nothing is left.
  std::optional<size_t> next_tier(size_t tiers);
  empty_spaces_request question() const;
  void take(const empty_spaces_answer& answer);

  /// Those of the part of which the tiers asked so far have no object.
  const std::vector<idle_space>& empty() const { return empty_; }

 private:
  size_t looked_ = 0; ///< at idle spaces
  bool looked_at_all_ = false;
  std::vector<idle_space> empty_; ///< by id
  size_t next_tier_ = 0;
};

} // namespace terrace
