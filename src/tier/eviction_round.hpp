// A round of making room: from what an allocator asks of its tier to what the victims gave back.
#pragma once

#include "memory/allocator.hpp"
#include "tier/request_context.hpp"
#include "tier/residency.hpp"
#include "tier/victims.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

/// A request that waits for room.
struct room_seeker {
  uint64_t number = 0; ///< in the order of arrival
  std::vector<uint64_t> sizes;
  context_ptr context; ///< may be null
};

/// The one round of an allocator; between rounds it is idle and remembers how the last one ended. A round begins when the
/// allocator gives it to its tier, with the free space if a request waits, and ends when the tier gives both back: one
/// question, one answer (decision 033). In between the tier asks the policy for victims, has the round choose those that
/// make the request fit, and lets them go:
///
///   idle --ask_for, ask_ahead--> asked --offer--> offered --choose--> evicting --evict--> idle
///                                  ^                 |                   |
///                                  +--- not enough --+-- all are held ---+
///
/// `choose` and `evict` end the round, too, when nobody waits any more, when what waits fits by now, or when nothing that may
/// leave is enough. Pure; whoever has it uses it alone.
class eviction_round {
 public:
  enum class stage : uint8_t {
    idle,     ///< not asked for anything, or done
    asked,    ///< the policy has to name victims
    offered,  ///< it has; which of them have to go?
    evicting, ///< these
  };
  stage now() const { return stage_; }

  // ---- the allocator's part ----

  /// Begins a round for requests that wait behind each other: for all of them if that can be, else for the first. `space`
  /// is lent; the first does not fit in it.
  void ask_for(std::vector<room_seeker> seekers, std::unique_ptr<allocator> space);

  /// Begins a round in which victims leave in their order until `bytes` more are free.
  void ask_ahead(uint64_t bytes);

  /// After the round: the space that was lent, with all that was freed; null if none was.
  std::unique_ptr<allocator> take_space() { return std::move(space_); }
  /// After a round without space: what was freed.
  std::vector<extent> take_freed() { return std::exchange(freed_, {}); }

  /// Whether the last round found that nothing which may leave helps the request of this number (0: no request, but room ahead of
  /// need). Until something else may leave, a round for it is in vain.
  bool in_vain_for(uint64_t number) const {
    return in_vain_ && (in_vain_->number == 0 || in_vain_->number == number);
  }
  /// What holds the memory, if the last round was in vain.
  std::string holders() const { return in_vain_ ? in_vain_->holders : std::string(); }

  // ---- the tier's part ----

  /// asked: what to ask the policy. Asked anew with more bytes where what was named was not enough.
  victim_request question(tier_kind tier);

  /// asked -> offered.
  void offer(victim_answer named);

  /// offered -> evicting, asked or idle.
  void choose(const residency& objects);

  /// evicting -> idle or asked: lets the victims go. `freed` lies in the lent space already, or goes with the answer.
  residency::eviction evict(residency& objects);

  /// The policy has ended: -> idle.
  void give_up(std::string why);

  /// Space that came back meanwhile. False: none is lent, so it is the allocator's to free.
  bool take_back(const std::vector<extent>& extents);

  /// Something may leave that could not when the policy was asked, or when the last round was in vain.
  void something_may_leave();

  /// Whether room is made ahead of need.
  bool ahead() const { return seekers_.empty(); }
  /// Bytes that were not free when the round began.
  uint64_t missing_bytes() const { return missing_; }
  /// Whether it ended without anything that may leave and helps.
  bool in_vain() const { return in_vain_.has_value(); }

 private:
  struct vain_round {
    uint64_t number =
        0; ///< of the one request that all which may leave are not enough for; 0: nothing may leave
    std::string holders;
  };

  void begin(uint64_t missing, uint64_t needed);
  std::optional<std::vector<size_t>> choose_for(const std::vector<room_seeker>& seekers,
                                                const std::vector<extent>& candidates);
  void end_in_vain(uint64_t number, std::string holders);

  stage stage_ = stage::idle;
  std::unique_ptr<allocator> space_;
  std::vector<room_seeker> seekers_;
  uint64_t missing_ = 0;
  uint64_t inference_ = 0;
  uint64_t asked_ = 0;           ///< bytes of victims that the policy is to name
  bool may_leave_since_ = false; ///< something became evictable after the policy was asked
  victim_answer named_;
  std::vector<entry_key> victims_;
  std::vector<extent> freed_;
  std::optional<vain_round> in_vain_;
};

} // namespace terrace
