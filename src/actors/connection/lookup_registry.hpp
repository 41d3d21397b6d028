// The lookups of a trust group that their clients gave an id to, so that others may wait for them or cancel them.
#pragma once

#include "actors/connection/group_messages.hpp"
#include "base/lookup_id.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace terrace::actors {

/// What came of a lookup. It holds nothing: the lease lives as long as its holders.
struct lookup_outcome {
  error failure; ///< why it has no answer
  space_ptr in;
  prefix_plan plan;
  bool leased = false;
  std::weak_ptr<const lease> held;
  std::function<void()> end_lease; ///< has its owner give it up; may be null
};
using lookup_outcome_ptr = std::shared_ptr<const lookup_outcome>;

/// No actor inside. A lookup is known from `begin`, which comes before its first I/O, until `answered_max` younger ones
/// have been answered. Whoever waits for an id that has not begun waits for its begin.
class lookup_registry {
 public:
  static constexpr size_t answered_max = 4096;
  static constexpr size_t answered_chunks_max = 16U << 20; ///< found by all of them: a byte each is kept

  /// With an error, and no outcome, or with an outcome that has none.
  using told = std::function<void(const error&, const lookup_outcome_ptr&)>;

  /// `looks_up`: of the request that looks up. Error: `bad_request` when a lookup with this id is under way.
  result<void> begin(const lookup_id& id, context_ptr looks_up);

  /// Tells all who wait. The lookup must have begun; a second finish changes nothing.
  void finish(const lookup_id& id, lookup_outcome_ptr outcome);

  /// Calls `done` with the outcome, at once if there is one. Errors: the lookup's own; `gone` when its lease has ended;
  /// what ended `waits`.
  void await(const lookup_id& id, context_ptr waits, told done);

  /// Ends a lookup that is under way, or the lease of one that has been answered. False: there is neither.
  bool cancel(const lookup_id& id);

  /// Tells the waiters whose context has ended.
  void sweep();

  size_t size() const { return lookups_.size(); }

 private:
  struct waiter {
    context_ptr context;
    told done;
  };
  struct entry {
    context_ptr looks_up; ///< null: somebody waits for it to begin
    lookup_outcome_ptr outcome;
    std::vector<waiter> waiters;
  };

  static void tell(const lookup_outcome_ptr& outcome, const told& done);
  void forget_oldest();

  std::map<lookup_id, entry> lookups_;
  std::deque<std::pair<lookup_id, lookup_outcome_ptr>> answered_; ///< the oldest first
  size_t answered_chunks_ = 0;
};

} // namespace terrace::actors
