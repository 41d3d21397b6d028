// The lookups of a trust group with ids that clients chose, so that other requests can await or cancel them.
#pragma once

#include "base/ids.hpp"
#include "base/request_context.hpp"
#include "group/group_messages.hpp"
#include "group/prompt_registry.hpp"
#include "index/prefix_plan.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace terrace {

/// The result of a lookup. It does not hold the found objects: the lease ends with its owner and readers.
struct lookup_outcome {
  error failure;             ///< set: the lookup has no answer, and why
  uint32_t chunk_tokens = 0; ///< tokens per chunk of its space; the outcome does not keep the space open
  prefix_plan plan;
  uint32_t recompute_chunks = 0; ///< as in lookup_answer
  uint32_t pending_chunks = 0;   ///< as in lookup_answer
  uint32_t brought_chunks = 0;   ///< as in lookup_answer
  prompt_entry_ptr prompt;       ///< the prompt entry whose logits were asked for and found; null: none
  std::vector<uint64_t> cursors; ///< the saved cursors, if the found prefix ends where the saved turn ends
  bool leased = false;
  std::weak_ptr<const lease> held;
  std::function<void()> end_lease; ///< asks the owner to release the lease; may be null
};
using lookup_outcome_ptr = std::shared_ptr<const lookup_outcome>;

/// Contains no actor. A lookup is known from `begin`, before it starts, until `answered_max` later ones have
/// been answered. A request may wait for an id before its lookup begins.
class lookup_registry {
 public:
  static constexpr size_t answered_max = 4096;
  /// chunks that all kept lookups found; one byte is kept for each
  static constexpr size_t answered_chunks_max = 16U << 20;

  /// Receives either an error and no outcome, or an outcome without error.
  using told = std::function<void(const error&, const lookup_outcome_ptr&)>;

  /// `looks_up`: context of the request. Error: `bad_request` if a lookup with this id is in progress.
  result<void> begin(const lookup_id& id, context_ptr looks_up);

  /// Answers all waiting requests. Does nothing unless the lookup that began with `looked_up` is in progress,
  /// because its begin may have been refused.
  void finish(const lookup_id& id, const context_ptr& looked_up, lookup_outcome_ptr outcome);

  /// Calls `done` with the outcome, at once if it is known. Errors: the error of the lookup; `gone` if its
  /// lease has ended; the error that ended `waits`.
  void await(const lookup_id& id, context_ptr waits, told done);

  /// Ends a lookup in progress, or the lease of an answered one. Returns false if there is neither.
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
    context_ptr looks_up; ///< null: it is answered, or somebody awaits it before it begins
    lookup_outcome_ptr outcome;
    std::vector<waiter> waiters;
  };

  static void tell(const lookup_outcome_ptr& outcome, const told& done);
  void forget_oldest();

  std::map<lookup_id, entry> lookups_;
  std::deque<std::pair<lookup_id, lookup_outcome_ptr>> answered_; ///< the oldest first
  size_t answered_chunks_ = 0;
};

// Messages about lookups with an id, between connections and their trust group.

struct begin_lookup_request {
  lookup_id id;
  context_ptr context; ///< context of the request that looks up
};
struct begin_lookup_answer {
  error failure;
};
struct finish_lookup_notice {
  lookup_id id;
  context_ptr context; ///< context of the request that looks up
  lookup_outcome_ptr outcome;
};
struct await_lookup_request {
  lookup_id id;
  context_ptr context; ///< context of the request that waits
};
struct await_lookup_answer {
  error failure;
  lookup_outcome_ptr found;
};
/// Ends a lookup in progress, or the lease of an answered lookup.
struct cancel_lookup_request {
  lookup_id id;
};
struct cancel_lookup_answer {
  error failure;
  bool found = false;
};

} // namespace terrace
