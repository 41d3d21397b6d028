// The lookups of a trust group with a client-chosen id, so that others can await or cancel them.
#pragma once

#include "base/lookup_id.hpp"
#include "group/group_messages.hpp"
#include "index/prefix_plan.hpp"
#include "group/prompt_book.hpp"
#include "base/request_context.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace terrace {

/// The result of a lookup. It holds nothing: the lease ends with its holders.
struct lookup_outcome {
  error failure;             ///< why there is no answer
  uint32_t chunk_tokens = 0; ///< of its space, which an outcome does not keep open
  prefix_plan plan;
  uint32_t recompute_chunks = 0; ///< as in lookup_answer
  prompt_entry_ptr prompt;       ///< whose logits were asked for and found; null: none
  std::vector<uint64_t> cursors; ///< as they were saved, if what was found ends where the saved turn does
  bool leased = false;
  std::weak_ptr<const lease> held;
  std::function<void()> end_lease; ///< makes its owner release it; may be null
};
using lookup_outcome_ptr = std::shared_ptr<const lookup_outcome>;

/// Contains no actor. A lookup is known from `begin`, before it starts, until `answered_max` later ones have
/// been answered. Waiting for an id that has not begun waits for its begin.
class lookup_registry {
 public:
  static constexpr size_t answered_max = 4096;
  static constexpr size_t answered_chunks_max = 16U << 20; ///< found by all of them: one byte each is kept

  /// Receives either an error and no outcome, or an outcome without error.
  using told = std::function<void(const error&, const lookup_outcome_ptr&)>;

  /// `looks_up`: context of the request. Error: `bad_request` if a lookup with this id is in progress.
  result<void> begin(const lookup_id& id, context_ptr looks_up);

  /// Answers all waiting requests. No effect unless the lookup that began with `looked_up` is in progress: its
  /// begin may have been refused.
  void finish(const lookup_id& id, const context_ptr& looked_up, lookup_outcome_ptr outcome);

  /// Calls `done` with the outcome, immediately if available. Errors: the lookup's own; `gone` if its lease
  /// has ended; what ended `waits`.
  void await(const lookup_id& id, context_ptr waits, told done);

  /// Ends a lookup in progress, or the lease of one that has been answered. False: there is neither.
  bool cancel(const lookup_id& id);

  /// Answers waiting requests whose context has ended.
  void sweep();

  size_t size() const { return lookups_.size(); }

 private:
  struct waiter {
    context_ptr context;
    told done;
  };
  struct entry {
    context_ptr looks_up; ///< null: it is answered, or awaited before it begins
    lookup_outcome_ptr outcome;
    std::vector<waiter> waiters;
  };

  static void tell(const lookup_outcome_ptr& outcome, const told& done);
  void forget_oldest();

  std::map<lookup_id, entry> lookups_;
  std::deque<std::pair<lookup_id, lookup_outcome_ptr>> answered_; ///< the oldest first
  size_t answered_chunks_ = 0;
};

} // namespace terrace
