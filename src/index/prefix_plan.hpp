// Merges the tiers' answers: how long a prefix is present, and the fastest tier of each part.
#pragma once

#include "base/ids.hpp"
#include "base/steps.hpp"
#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// A set of a prefix's objects, numbered as in chunk_layout.hpp.
class object_bitmap {
 public:
  object_bitmap() = default;
  explicit object_bitmap(size_t objects) : many_(objects > few_max ? words_of(objects) : 0), size_(objects) {}
  /// Makes the set of the objects for which `is(number)` holds.
  template <class Is>
  static object_bitmap of(size_t objects, Is&& is) {
    object_bitmap made(objects);
    for (size_t first = 0; first < objects; first += 64) {
      uint64_t word = 0;
      for (size_t i = 0; i < std::min<size_t>(64, objects - first); ++i)
        word |= uint64_t{is(first + i)} << i;
      made.data()[first / 64] = word;
    }
    return made;
  }

  void set(size_t object) { data()[object / 64] |= uint64_t{1} << object % 64; }
  bool test(size_t object) const { return words()[object / 64] >> object % 64 & 1; }
  size_t size() const { return size_; }

  /// Object n is bit n % 64 of word n / 64.
  std::span<const uint64_t> words() const {
    return {size_ > few_max ? many_.data() : few_.data(), size_ > few_max ? many_.size() : words_of(size_)};
  }

  /// Adds the objects of `part`, whose first object has the number `first` here, a multiple of 64.
  /// Precondition: they fit.
  void merge(size_t first, const object_bitmap& part) {
    assert(first % 64 == 0 && first + part.size_ <= size_);
    uint64_t* into = data() + first / 64;
    for (uint64_t word : part.words())
      *into++ |= word;
  }

  /// Returns the first `objects` objects.
  object_bitmap first(size_t objects) const {
    assert(objects <= size_);
    object_bitmap part(objects);
    std::copy_n(words().begin(), words_of(objects), part.data());
    if (objects % 64 != 0)
      part.data()[objects / 64] &= (uint64_t{1} << objects % 64) - 1;
    return part;
  }

  size_t count() const {
    size_t set = 0;
    for (uint64_t word : words())
      set += static_cast<size_t>(std::popcount(word));
    return set;
  }

 private:
  static constexpr size_t few_max = 128; ///< most lookups have no more objects
  static constexpr size_t words_of(size_t objects) { return (objects + 63) / 64; }
  uint64_t* data() { return size_ > few_max ? many_.data() : few_.data(); }

  std::array<uint64_t, few_max / 64> few_{};
  std::vector<uint64_t> many_; ///< used instead, if there are more
  size_t size_ = 0;
};

/// The objects that one tier has.
struct tier_answer {
  tier_kind tier = nowhere;
  object_bitmap present;
};

/// Describes the lookup for which the plan is made.
struct plan_request {
  uint32_t chunks = 0; ///< number of chunks requested; they begin at `first_token`
  /// position in the prompt where the request begins, 0 unless it continues a parent
  uint64_t first_token = 0;
  uint64_t prompt_tokens = 0; ///< end of the prompt
  uint32_t tail_tokens = 0;   ///< not 0: the last chunk is a partial one with this many tokens
  bool logits = false; ///< the logits of the prompt's last token are known: it need not be computed again
};

/// An object of a prefix.
struct prefix_object {
  uint32_t chunk = 0;
  uint16_t pool = 0;
  uint16_t rank = 0;
  friend bool operator==(const prefix_object&, const prefix_object&) = default;
};

/// A prefix is found up to the longest number of chunks at which the hit rule of every pool holds, where all
/// ranks of a chunk must be present in any tier; tiers may alternate from object to object. Pools with
/// `trailing_chunks` are searched downward from what the other pools allow; their window reaches back at most
/// to the request's first chunk, because the client has the earlier chunks.
///
/// The usable prefix is shorter if the found chunks end exactly at the end of the prompt, because an engine
/// must compute at least the last token to get logits. If every pool has the rule `all_chunks`, all chunks
/// are loaded and the last token is recomputed: the usable prefix ends one token before the end of the
/// prompt. A recurrent state or a window cannot be rolled back by one token, so in a space with
/// `trailing_chunks` pools the usable prefix ends at the next shorter length at which every rule holds.
///
/// Tokens are counted from the request's first chunk; tokens of a parent are not included.
struct prefix_plan {
  uint32_t requested_chunks = 0;
  uint32_t found_chunks = 0;
  uint32_t usable_chunks = 0; ///< number of chunks to load so that `usable_tokens` can be used
  uint64_t first_token = 0;   ///< position in the prompt at which the request's first chunk begins
  uint64_t found_tokens = 0;  ///< found_chunks in tokens
  uint32_t tail_tokens = 0;   ///< not 0: the last found chunk is a partial one with this many tokens
  uint64_t usable_tokens = 0;
  std::optional<prefix_object> missing; ///< the first absent object behind the found chunks

  /// Per found chunk: the slowest tier among its required objects, each in its fastest tier; `none` for a
  /// chunk without required objects (only in a space whose pools all have `trailing_chunks`).
  std::vector<tier_kind> chunk_tiers;

  /// The fastest tier of each object of the found chunks, numbered as in chunk_layout.hpp; `none`: in no
  /// tier.
  std::vector<tier_kind> object_tiers;

  /// How long to wait for what of it has to be read, if that was chosen because it takes less time than computing it
  /// (tier/search/recompute_choice.hpp); 0: until it has come.
  double patience_s = 0;
};

/// True if a prefix of `length` chunks needs the objects of `pool` in chunk number `chunk` (both counted from
/// the request's first chunk).
bool needs(const pool_spec& pool, uint32_t length, uint32_t chunk);

/// Counts the found chunks by `chunk_tiers`; chunks in no tier are left out.
std::array<uint64_t, tier_kinds> chunks_by_tier(const prefix_plan& plan);

/// Makes a plan in steps. The planner must not be moved.
class prefix_planner {
 public:
  /// `spec` must outlive the planner. Chunks behind the first `chunks_at_most` were not searched. Each
  /// answer's bitmap has at least one bit for each object of these chunks.
  prefix_planner(const space_spec& spec, const plan_request& request, std::vector<tier_answer> answers,
                 uint32_t chunks_at_most = UINT32_MAX);
  prefix_planner(const prefix_planner&) = delete;
  prefix_planner& operator=(const prefix_planner&) = delete;

  /// The objects that one step plans for, about 100 us.
  static constexpr size_t step_objects = 16'384;

  /// Returns true if there is another step.
  bool step() { return work_.next(); }
  const prefix_plan& plan() const { return plan_; } ///< call after the last step
  prefix_plan take() { return std::move(plan_); }   ///< call once
  std::span<const tier_answer> answers() const { return answers_; }
  /// True if the rules of all pools hold for a prefix of `chunks` chunks. Precondition: the plan is made and
  /// has found at least as many.
  bool rules_hold(uint32_t chunks) const;

  /// Begins again with at most `chunks` of the found chunks; further steps follow. Precondition: the plan was made.
  void cut(uint32_t chunks);

 private:
  steps plan_all();
  steps plan_rest();
  void merge_up_to(size_t objects);
  bool whole(uint32_t chunk, size_t pool) const;
  size_t first_absent(size_t first, size_t end) const;
  void lengthen_chain(uint32_t first, uint32_t end);
  void add_runs(uint32_t chunk);
  steps find_longest(uint32_t& length);
  void find_missing();
  tier_kind slowest_of(uint32_t chunk) const;
  uint64_t tokens_of(uint32_t chunks) const;

  const space_spec* spec_;
  chunk_layout layout_;
  plan_request request_;
  uint32_t chunks_; ///< an upper bound on the chunks of the request
  std::vector<tier_answer> answers_;
  std::vector<size_t> all_pools_, trailing_pools_;
  uint32_t chain_ = 0; ///< leading chunks that every pool whose chunks are all needed has
  /// For each number of chunks n and each trailing pool: how many consecutive chunks, ending with the n-th,
  /// have all their ranks.
  std::vector<uint32_t> runs_;
  prefix_plan plan_;
  steps work_;
};

/// Merges the answers in one call.
prefix_plan make_prefix_plan(const space_spec& spec, const plan_request& request,
                             std::vector<tier_answer> answers);

// Finds objects of chunks that nobody can complete.

/// A chunk counts only if all its ranks are present. If a rank is missing and its last connection has ended, the
/// chunk's other objects use memory for nothing. Returns the numbers of these objects (chunk_layout.hpp), for chunks
/// from `first_chunk` on. `present` says which objects are in any tier; chunks that were not searched have none.
std::vector<size_t> unusable_objects(const space_spec& spec, const rank_presence& ranks,
                                     const object_bitmap& present, uint32_t first_chunk);

} // namespace terrace
