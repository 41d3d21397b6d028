// A window of a store in progress: what is copied, published and passed to the tiers below, and what remains.
//
// Pure: a store asks the tier and the copier, and passes their answers to this class. Used by one thread at a time.
#pragma once

#include "memory/segmented_arena.hpp"
#include "tier/messages.hpp"
#include "transfer/copy_messages.hpp"
#include "transfer/scatter_gather.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

class store_window {
 public:
  /// After this many rounds in which others abandoned what the window waited for, the store gives up.
  static constexpr int attempts_max = 16;

  /// `objects`: of the window, whose first is number `begin` of the request.
  store_window(size_t begin, batch_ptr objects)
      : begin_(begin), objects_(std::move(objects)), copied_(objects_->size()) {}

  const batch_ptr& objects() const { return objects_; }
  uint64_t physical_bytes() const; ///< of all objects

  /// Space for what is absent. The first round is an access, unless the request belongs to an inference, which is one.
  /// `may_shrink`: without space, the store tries a smaller window.
  acquire_request space(const context_ptr& context, bool may_shrink = false) const;

  enum class rest : uint8_t { nothing, evicted, written_by_others };
  /// What remains after a round with this answer. Objects that were present when the space was requested may be absent
  /// now. Those at the end stay absent; a gap is filled in another round (base/window_refill.hpp).
  rest rest_of(const acquire_answer& acquired);
  static bool any_reserved(const acquire_answer& acquired);

  enum class next : uint8_t { done, again, await, give_up };
  /// A store does not compete with eviction forever: what keeps leaving was written, by this store or by others, and was
  /// evicted like any object.
  next after_round(rest left);
  /// After `await`. `abandoned`: a writer gave up one of the objects; otherwise all were written.
  next after_wait(bool abandoned);

  /// Into the reserved places. `sums`: with payload checksums.
  copy_request copy(const acquire_answer& acquired, std::shared_ptr<const scatter_gather> runs,
                    const segmented_arena& memory, bool sums) const;
  /// Of what was copied. `bytes`: the payload that it adds.
  publish_request publication(const acquire_answer& acquired, uint64_t& bytes);
  /// `sums`: of the copied payloads, in order, or empty. Returns them parallel to the window's objects.
  static std::vector<uint64_t> checksums(const acquire_answer& acquired, const std::vector<uint64_t>& sums);

  struct chunks {
    size_t stored = 0;  ///< at least one of their objects was copied
    size_t present = 0; ///< the others
  };
  chunks count(size_t objects_per_chunk) const;

 private:
  size_t begin_;
  batch_ptr objects_;
  std::vector<bool> copied_; ///< parallel to the objects
  std::vector<bool> wanted_; ///< parallel: those that the next round stores if they are absent; empty: all
  int abandoned_ = 0;        ///< rounds in which others gave up writing some of the objects
  int evicted_ = 0;          ///< rounds in which objects were evicted while it waited for space or for others
};

/// Of an object, behind its header.
std::byte* payload_at(const segmented_arena& memory, const object_place& place);

} // namespace terrace
