// The line in front of an allocator. A request is admitted whole or waits whole, in arrival order; while it waits it
// holds nothing. Pure: the allocator actor turns its decisions into messages.
#pragma once

#include "actors/messages.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace terrace::actors {

class allocation_queue {
 public:
  using reply = std::function<void(allocate_answer)>;

  allocation_queue(std::unique_ptr<allocator> space, uint64_t free_ahead_bytes, size_t waiting_max);

  /// Answers now or later. Errors: `bad_request` (a size that never fits), `busy` (the line is full), `no_space`
  /// (nothing can be evicted and the request may not wait), whatever ended the context.
  void allocate(const allocate_request& request, reply answer);

  void free(const std::vector<extent>& extents);

  /// The tier's answer to `room_wanted`.
  void room_made(const std::vector<extent>& extents, bool exhausted, const std::string& holders);

  /// Answers the waiting requests whose context has ended.
  void sweep();

  /// Bytes to ask the tier for now; 0 while it is being asked, or when nothing is wanted.
  uint64_t room_wanted();

  size_t waiting() const { return line_.size(); }
  const allocator& space() const { return *space_; }

 private:
  struct waiting_request {
    allocate_request request;
    uint64_t physical_bytes = 0;
    reply answer;
  };

  void serve();
  error ended(const waiting_request& waiting) const;

  std::unique_ptr<allocator> space_;
  uint64_t free_ahead_bytes_;
  size_t waiting_max_;
  std::deque<waiting_request> line_;
  uint64_t retries_ = 0;   ///< of the head, with enough bytes free but in too many runs
  bool asked_ = false;     ///< the tier owes an answer
  bool exhausted_ = false; ///< its last answer was "nothing may leave"
  std::string holders_;
};

} // namespace terrace::actors
