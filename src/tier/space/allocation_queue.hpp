// The queue of an allocator. A request is admitted as a whole or waits as a whole; while it waits it holds
// nothing. Pure: the allocator actor turns its decisions into messages.
#pragma once

#include "base/fair_queue.hpp"
#include "tier/messages.hpp"
#include "tier/objects/check_messages.hpp"
#include "tier/space/eviction_round.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace terrace {

// Classifies the refusal of a request for space in a tier, for counters.

enum class space_refusal : uint8_t {
  none, ///< nobody was refused: the requester comes again for less, has ended, or asked for something impossible
  prefetch, ///< it was ahead of demand, which goes last
  /// Eviction could have made room: too many requests wait for it, or the deadline passed before their turn.
  dropped,
  /// Eviction could not make room: leases, readers and transfers hold the rest, or the tier is smaller than
  /// the request.
  no_room,
};

/// `failure` is the answer to the request's space from the tier's allocator (tier/space/allocation_queue.hpp).
inline space_refusal refusal_of(const acquire_request& request, const error& failure) {
  bool ahead = request.context && request.context->ahead;
  bool live = !request.context || request.context->live();
  switch (failure.code) {
    case errc::no_space:
      if (ahead)
        return space_refusal::prefetch;
      return live && request.may_come_again ? space_refusal::none : space_refusal::no_room;
    case errc::busy: return ahead ? space_refusal::prefetch : space_refusal::dropped;
    case errc::deadline: return ahead ? space_refusal::none : space_refusal::dropped;
    default: return space_refusal::none;
  }
}

/// Connections get equal shares of the bytes (base/fair_queue.hpp), each in order of arrival. A request that must wait
/// may be passed by requests that fit, among the first eight of each connection. More objects are evicted for them if
/// necessary. Together they may have as many bytes as the waiting request asks for, and then nothing passes it any
/// more. So a small request does not wait for a large one for which there is no room, and the large one waits for at
/// most its own size more.
///
/// Requests ahead of demand (`request_context::ahead`) wait in a queue of their own, which is served while nobody else
/// waits: they are overtaken. They are refused with `busy` when a quarter of the places is taken, when no room can be
/// made for the first of those who wait, or once the requests that overtook them took a quarter of the arena.
///
/// While the space is lent to an eviction round (`begin_round`), arriving requests are kept and applied in order when
/// the space is back: requests that may evict would wait behind the head in any case.
class allocation_queue {
 public:
  using reply = std::function<void(allocate_answer)>;

  allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes, size_t waiting_max);

  /// Answers now or later. Errors: `bad_request` (a size that can never fit), `busy` (the queue is full, or
  /// the connection has as many waiting requests as places are left), `no_space` (nothing can be evicted, and
  /// the request may not wait or could wait only for the end of leases), or the error that ended the context.
  void allocate(const allocate_request& request, reply answer);

  void free(const std::vector<extent>& extents);

  /// Returns a round to send to the tier; null while one is in progress, if no room is needed, or if nothing
  /// can be evicted now. Up to 16 waiting requests for one extent share a round. If a request waits, the
  /// space is lent with the round.
  std::shared_ptr<eviction_round> begin_round();

  /// The round has been returned.
  void end_round(std::shared_ptr<eviction_round> round);

  /// After a failed round something else became evictable.
  void more_evictable();

  /// The arena grew.
  void grow(const grow_notice& notice);

  /// Stops allocation in these segments; `empty` is called when they are empty. Waiting requests that the
  /// rest of the arena can never hold are answered with `no_space`. Errors: those of `allocator::retire`.
  void retire(extent range, std::function<void(retire_answer)> empty);

  /// Answers the waiting requests whose context has ended.
  void sweep();

  /// Compares its space with the objects that have it.
  check_space_answer check(const check_space_request& request) const;

  usage_answer report() const { return {{}, usage(), room_bytes(), waiting(), std::string(name_)}; }

  /// Free bytes that can be allocated and are not kept free ahead of demand.
  uint64_t room_bytes() const;

  size_t waiting() const { return line_.size() + ahead_.size() + arrivals_kept_; }
  /// The usage of the space; while the space is lent, its usage when it was lent.
  allocator_usage usage() const { return space_ ? space_->usage() : lent_usage_; }

 private:
  struct waiting_request {
    allocate_request request;
    uint64_t physical_bytes = 0;
    uint64_t number = 0;       ///< in order of arrival
    uint64_t passing_left = 0; ///< bytes by which others may still pass it while it is first
    reply answer;
  };

  struct retiring {
    extent range;
    std::function<void(retire_answer)> empty;
  };

  size_t waiting_of(const flow& owner) const;
  bool admits(const allocate_request& request) const;
  fair_queue<waiting_request>& served_now() { return line_.empty() ? ahead_ : line_; }
  void overtaken(uint64_t bytes);
  void refuse_ahead();
  void refuse_impatient();
  allocate_answer too_many(const flow& owner) const;
  void try_again(); ///< call only while the space is not lent
  void serve();
  turn offer(waiting_request& entry);
  turn refuse(waiting_request& entry, error why);
  const waiting_request* next_seeker();
  void refuse_what_never_fits();
  std::optional<error> never_fits(const allocate_request& request, uint64_t physical) const;
  uint64_t free_ahead(uint64_t capacity) const;
  error ended(const waiting_request& waiting) const;
  std::vector<room_seeker> together();
  bool failed_for(const waiting_request& waiting) const {
    return round_ && (round_->failed_for(waiting.number) || failed_.contains(waiting.number));
  }
  std::string holders() const; ///< appended to an error's text

  std::unique_ptr<allocator> space_; ///< null while it is lent
  std::shared_ptr<eviction_round> round_ =
      std::make_shared<eviction_round>(); ///< null while it is with the tier
  std::string name_;
  allocator_usage lent_usage_;
  uint64_t lent_room_ = 0;
  /// For a capacity of `first_capacity_`; if the arena is resized, it keeps its share.
  uint64_t free_ahead_bytes_;
  uint64_t first_capacity_;
  size_t waiting_max_;
  fair_queue<waiting_request> line_{64 << 10};
  fair_queue<waiting_request> ahead_{64 << 10}; ///< requests ahead of demand
  /// Numbers of requests for which no room could be made, until more is evictable.
  std::unordered_set<uint64_t> failed_;
  std::vector<retiring> retiring_;
  uint64_t arrived_ = 0;
  std::vector<std::function<void()>> kept_;      ///< requests that arrived while the space was lent
  std::vector<extent> kept_free_;                ///< extents that were freed meanwhile
  size_t arrivals_kept_ = 0;                     ///< allocation requests among them
  std::unordered_map<uint64_t, size_t> kept_of_; ///< the same requests, by connection
};

} // namespace terrace
