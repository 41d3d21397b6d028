// Why a chunk does not continue a prefix.
#pragma once

#include "base/ids.hpp"
#include "base/miss_reason.hpp"
#include "base/printable.hpp"
#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/departure_log.hpp"
#include "tier/objects/event_log.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

struct chunk_miss {
  miss_reason why = miss_reason::not_stored;
  tier_kind from = nowhere; ///< the tier that it has left, that did not take it, or that is out of service
  uint32_t seconds_ago = 0;
  uint32_t object = 0;                          ///< the first one that is missing (index/chunk_layout.hpp)
  std::string policy{};                         ///< the policy that evicted it; empty: none
  std::optional<refusal_reason> refused{};      ///< why the tier did not take it
  std::optional<std::chrono::seconds> unused{}; ///< as in departure

  friend bool operator==(const chunk_miss&, const chunk_miss&) = default;
};

/// Examines the chunks of a space. Pure.
class chunk_examiner {
 public:
  chunk_examiner(space_ptr of, const departure_log& log);

  /// The objects of a chunk that a prefix needs: those of pools that need all chunks, or of all pools if there is none.
  const std::vector<uint32_t>& needed() const { return needed_; }

  /// Where an object is, by its number in the chunk. `none`: nowhere.
  struct place {
    tier_kind tier = nowhere;
    bool readable = false;
  };
  using place_of = std::function<place(uint32_t object)>;
  /// Returns nullopt if every needed object can be read. Of several reasons the latest departure counts.
  std::optional<chunk_miss> examine(const digest& chunk, const place_of& find) const;

  /// "rank 1 of pool kv" of an object.
  std::string name_of(uint32_t object) const;

 private:
  space_ptr space_;
  const departure_log& log_;
  chunk_layout layout_;
  std::vector<uint32_t> needed_;
};

inline chunk_examiner::chunk_examiner(space_ptr of, const departure_log& log)
    : space_(std::move(of)), log_(log), layout_(space_->spec) {
  const chunk_need need(space_->spec);
  for (uint32_t object = 0; object < layout_.objects_per_chunk(); ++object)
    if (need.objects(static_cast<uint16_t>(layout_.pool_of(object))) != 0)
      needed_.push_back(object);
}

inline std::optional<chunk_miss> chunk_examiner::examine(const digest& chunk, const place_of& find) const {
  std::optional<chunk_miss> missed;
  bool some_are_there = false;
  for (uint32_t object : needed_) {
    place found = find(object);
    if (found.readable) {
      some_are_there = true;
      continue;
    }
    chunk_miss miss{.object = object};
    if (found.tier != nowhere) {
      miss.why = miss_reason::out_of_service;
      miss.from = found.tier;
    } else if (auto left = log_.find(to_entry_key(layout_.key(space_->id, chunk, object)))) {
      miss = {left->why, left->from, left->seconds_ago, object, left->policy, left->refused, left->unused};
    }
    bool is_known = miss.why != miss_reason::not_stored;
    bool was_known = missed && missed->why != miss_reason::not_stored;
    if (!missed || (is_known && (!was_known || miss.seconds_ago < missed->seconds_ago)))
      missed = miss;
  }
  if (missed && some_are_there && missed->why == miss_reason::not_stored)
    missed->why = miss_reason::incomplete;
  return missed;
}

inline std::string chunk_examiner::name_of(uint32_t object) const {
  size_t pool = layout_.pool_of(object);
  std::string name = "pool " + printable(space_->spec.pools[pool].name);
  if (layout_.ranks(pool) == 1)
    return name;
  return "rank " + std::to_string(object - layout_.first_object(pool)) + " of " + name;
}

} // namespace terrace
