// One round of eviction, from the allocator's request to the freed extents.
#pragma once

#include "base/request_context.hpp"
#include "index/tenant_directory.hpp"
#include "memory/allocator.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_departures.hpp"
#include "tier/objects/residency.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// Chooses among the proposed victims if only some of them make room for the waiting request.

/// `chosen` are indices into `named.victims`. A victim takes along all proposed victims below it in its
/// chain, because an object is evicted only after all that continue its prefix. Returns the victims in the
/// order in which they were proposed.
std::vector<entry_key> with_descendants(const victim_answer& named, const std::vector<size_t>& chosen);

/// A request that waits for room.
struct room_seeker {
  uint64_t number = 0; ///< in order of arrival
  std::vector<uint64_t> sizes;
  context_ptr context; ///< may be null
  tenant_id tenant{};  ///< the tenant whose objects it may replace below their guaranteed share
};

/// The one round of an allocator; between rounds it is idle and keeps how the last one ended. A round starts when the
/// allocator sends it to its tier, with the free space if a request waits, and ends when the tier returns both: one
/// request, one answer (decision 033). In between the tier asks the policy for victims, the round chooses those that
/// make the request fit, and the tier evicts them:
///
///   idle --ask_for, ask_ahead--> asked --offer--> offered --choose--> evicting --evict--> idle
///                                  ^                 |                   |
///                                  +--- not enough --+-- all are held ---+
///
/// `choose` and `evict` also end the round if no request waits any more, if the request fits meanwhile, or if
/// everything evictable together is not enough: then the round has failed. Pure; used only by the actor that
/// has it.
class eviction_round {
 public:
  enum class stage : uint8_t {
    idle,     ///< no request, or done
    asked,    ///< waiting for victims of the policy
    offered,  ///< victims are named; which are needed?
    evicting, ///< victims are chosen
  };
  stage now() const { return stage_; }

  // ---- for the allocator ----

  /// Starts a round for consecutive requests in the queue: for all of them if possible, else for the first.
  /// `space` is lent; the first request does not fit in it.
  void ask_for(std::vector<room_seeker> seekers, std::unique_ptr<allocator> space);

  /// Starts a round that evicts victims in their order until `bytes` more are free. No space is lent.
  void ask_ahead(uint64_t bytes);

  /// After the round: returns the lent space with everything that was freed, or null. The requests are released.
  std::unique_ptr<allocator> take_space() {
    seekers_.clear();
    return std::move(space_);
  }
  /// The lent space, to look at; null: none is lent.
  const allocator* lent() const { return space_.get(); }
  /// The extents that were freed and travel with the round.
  const std::vector<extent>& freed() const { return freed_; }
  /// After a round without space: returns the freed extents.
  std::vector<extent> take_freed() { return std::exchange(freed_, {}); }

  // ---- for the tier, of a tenant at its bound ----

  /// Starts a round in which only objects of the tenant leave: at least `missing` bytes, `wanted` if there are as many.
  /// No space is lent. The tier removes all others from what the policy names (`tenant_shares::keep_only_of`).
  void ask_own(tenant_id tenant, uint64_t missing, uint64_t wanted, uint64_t inference);
  bool own() const { return own_; }
  /// The tenant for which room is made; 0: nobody in particular.
  tenant_id tenant() const { return tenant_; }
  /// The round has just failed: the policy is asked again, because it may name more now.
  void retry();
  /// Bytes of victims that the policy is asked for first.
  uint64_t asked_bytes() const { return asked_; }
  /// Describes what holds the memory, if the round failed.
  std::optional<residency::holders> held_by() const {
    return failure_ ? std::optional(failure_->holders) : std::nullopt;
  }

  // ---- for the allocator again ----

  /// True if the last round failed, and another one for the request with this number (0: none, but room ahead
  /// of demand) would fail too until something else becomes evictable.
  bool failed_for(uint64_t number) const {
    return failure_ && (failure_->number == 0 || failure_->number == number);
  }
  /// The request for which the last round failed; 0: it did not fail, or would fail for any.
  uint64_t failed_number() const { return failure_ ? failure_->number : 0; }
  /// Describes what holds the memory, if the last round failed; else empty.
  std::string holders() const { return failure_ ? failure_->holders.text : std::string(); }
  /// True if the last round failed and a request for `bytes` of `capacity` can only wait for the end of leases.
  bool only_leases_end(uint64_t bytes, uint64_t capacity) const {
    return failure_ && (failure_->holders.only_leases() || failure_->holders.leased_bytes + bytes > capacity);
  }

  // ---- for the tier ----

  /// True if the round failed while transfers held something.
  bool transfers_held() const { return failure_ && failure_->holders.transfer_bytes != 0; }

  /// asked: returns the request to the policy. Each time it is for more bytes, if the victims named before
  /// were not enough.
  victim_request question(tier_kind tier);

  /// asked -> offered.
  void offer(victim_answer named);

  /// offered -> evicting, asked or idle.
  void choose(const residency& objects);

  /// evicting: the chosen victims.
  const std::vector<entry_key>& victims() const { return victims_; }

  /// evicting -> idle, if no request waits any more, or if it fits meanwhile: then nothing has to be evicted.
  /// Ask again after the victims were written to a tier below, which takes time.
  bool ends_without();

  /// evicting -> idle or asked. Freed extents are in the lent space already, or travel with the round.
  /// `demoted` has the victims that were written to a tier below first (object_departures::begin_demotion), the only
  /// ones that leave; null: all.
  object_departures::eviction evict(residency& objects, const std::vector<object_id>* demoted = nullptr);

  /// asked -> idle: the policy has terminated.
  void give_up(std::string why);

  /// Takes extents that the tier freed meanwhile. Returns false if no space is lent, so that they have to be
  /// sent to the allocator.
  bool put_back(const std::vector<extent>& extents);

  /// Something became evictable after the policy was asked, or after the round failed.
  void more_evictable();

  /// True if room is made ahead of demand.
  bool ahead() const { return seekers_.empty(); }
  /// Bytes missing when the round started; 0 if enough were free, but not contiguous.
  uint64_t missing_bytes() const { return missing_; }
  bool failed() const { return failure_.has_value(); }

 private:
  struct failure {
    uint64_t number = 0; ///< number of the request for which all candidates are not enough; 0: there are none
    residency::holders holders;
  };

  void begin(uint64_t missing, uint64_t asked);
  std::vector<room_seeker> waiting() const;
  std::optional<std::vector<size_t>> choose_for(const std::vector<room_seeker>& seekers,
                                                const std::vector<extent>& candidates);
  void choose_own(const residency& objects);
  void fail(uint64_t number, residency::holders holders);

  stage stage_ = stage::idle;
  std::unique_ptr<allocator> space_;
  std::vector<room_seeker> seekers_;
  uint64_t missing_ = 0;
  uint64_t inference_ = 0;
  uint64_t asked_ = 0; ///< bytes of victims requested from the policy
  tenant_id tenant_{};
  bool own_ = false;            ///< only objects of the tenant leave
  uint64_t wanted_ = 0;         ///< bytes wanted by such a round
  bool more_evictable_ = false; ///< an object became evictable after the policy was asked
  victim_answer named_;
  std::vector<entry_key> victims_;
  std::vector<extent> freed_;
  std::optional<failure> failure_;
};

} // namespace terrace
