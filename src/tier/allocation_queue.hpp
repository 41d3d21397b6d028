// The line in front of an allocator. A request is admitted whole or waits whole, in arrival order; while it waits it
// holds nothing. Pure: the allocator actor turns its decisions into messages.
#pragma once

#include "tier/allocate.hpp"
#include "tier/room.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace terrace {

class allocation_queue {
 public:
  using reply = std::function<void(allocate_answer)>;

  allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes, size_t waiting_max);

  /// Answers now or later. Errors: `bad_request` (a size that never fits), `busy` (the line is full), `no_space`
  /// (nothing can be evicted and the request may not wait), whatever ended the context.
  void allocate(const allocate_request& request, reply answer);

  void free(const std::vector<extent>& extents);

  /// The tier's answer to `room_wanted`.
  void room_made(const terrace::room_made& made);

  /// The tier's question before it evicts. Freed bytes need not be one run: only those candidates are chosen that make
  /// the head of the line fit, which then surely does; with it those that room was asked for together, if there is some.
  choose_answer choose(const std::vector<extent>& candidates);

  /// The arena became larger.
  void grow(const grow_notice& notice);

  /// Nothing new goes into these segments; `empty` is called when nothing lies there any more. Waiting requests that the
  /// rest of the arena can never hold are answered with `no_space`. Errors: those of `allocator::retire`.
  void retire(extent range, std::function<void(retire_answer)> empty);

  /// Answers the waiting requests whose context has ended.
  void sweep();

  /// What to ask the tier for now; nothing while it is being asked, or when nothing is wanted. Requests for one extent that
  /// wait behind each other are asked for together, up to 16.
  std::optional<room_request> room_wanted();

  /// Free where something may be put, and not kept free ahead of need.
  uint64_t room_bytes() const;

  size_t waiting() const { return line_.size(); }
  const allocator& space() const { return *space_; }

 private:
  struct waiting_request {
    allocate_request request;
    uint64_t physical_bytes = 0;
    uint64_t number = 0; ///< in the order of arrival
    reply answer;
  };

  struct retiring {
    extent range;
    std::function<void(retire_answer)> empty;
  };

  void serve();
  void refuse_what_never_fits();
  std::optional<error> never_fits(const allocate_request& request, uint64_t physical) const;
  uint64_t free_ahead(uint64_t capacity) const;
  error ended(const waiting_request& waiting) const;
  const waiting_request* head() const; ///< the first that may evict; those behind it wait for it
  std::vector<const waiting_request*> together() const;
  bool exhausted_for(const waiting_request& waiting) const {
    return exhausted_ && (!exhausted_number_ || exhausted_number_ == waiting.number);
  }

  std::unique_ptr<allocator> space_;
  uint64_t free_ahead_bytes_; ///< of `first_capacity_`; a larger or smaller arena keeps its share
  uint64_t first_capacity_;
  size_t waiting_max_;
  std::deque<waiting_request> line_;
  std::vector<retiring> retiring_;
  uint64_t arrived_ = 0;
  uint64_t asked_up_to_ = 0;                 ///< the last of those that room was asked for together
  uint64_t chosen_for_ = 0;                  ///< the number of the request that the last choice was for
  bool asked_ = false;                       ///< the tier owes an answer
  bool exhausted_ = false;                   ///< its last answer was "nothing may leave"
  std::optional<uint64_t> exhausted_number_; ///< and that was said of this request alone
  std::string holders_;
};

} // namespace terrace
