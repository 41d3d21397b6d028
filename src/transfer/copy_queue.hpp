// The work that waits for a copier, and whose part of it is next.
#pragma once

#include "base/fair_queue.hpp"
#include "transfer/copy_messages.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace terrace {

/// Trust groups, and connections within a group, get equal shares of a copier (base/fair_queue.hpp), whatever
/// their requests consist of: large copies and many small pieces are served in slices that cost about the same. An
/// object is sealed or checked in one slice, and its connection is charged for all of it.
/// A request that arrives while others are served waits for at most one slice of each other connection, beside
/// what is in progress. Pure, and used by one thread at a time, which does the work in `serve`.
class copy_queue {
 public:
  /// Cost of a slice: 100 us of copying.
  static constexpr uint64_t slice_cost = 1 << 20;
  /// Work for prefetches (`request_context::ahead`), and for what is written to a tier below, of which most has been answered
  /// already, is done while nobody else waits, and after so many slices of others.
  static constexpr uint32_t patience = 8;

  /// `piece_bytes`: bytes copied between checks of a request's context.
  explicit copy_queue(uint64_t piece_bytes) : piece_bytes_(piece_bytes) {}

  void add(copy_request request, std::function<void(copy_answer)> answer);
  void add(seal_request request, std::function<void(seal_answer)> answer);
  void add(check_request request, std::function<void(check_answer)> answer);

  /// The payload of a request, in bytes.
  static uint64_t payload_of(const copy_request& request) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < request.objects.size(); ++i)
      bytes += request.runs->count(request.objects[i].number, request.range_of(i)).bytes;
    return bytes;
  }
  template <class Request>
  static uint64_t payload_of(const Request& request) {
    uint64_t bytes = 0;
    for (const sealed_object& object : request.objects)
      bytes += object.payload_bytes;
    return bytes;
  }

  bool empty() const { return line_.empty() && later_.empty(); }
  bool has_one() const { return line_.size() + later_.size() == 1; }

  /// Does a slice of the request whose turn it is, and answers it if that was the last. Must not be empty.
  void serve();

 private:
  /// A request in progress.
  class job {
   public:
    virtual ~job() = default;
    virtual uint64_t next_cost() const = 0;  ///< of its next slice
    virtual bool go_on(uint64_t budget) = 0; ///< true: it is done
    virtual void finish() = 0;
  };
  class copying;
  template <class Request, class Answer>
  class object_work;

  struct entry {
    flow owner;
    std::unique_ptr<job> what;
  };

  void push(const context_ptr& context, std::unique_ptr<job> what, bool later = false);

  uint64_t piece_bytes_;
  fair_queue<entry> line_{slice_cost};
  fair_queue<entry> later_{slice_cost};
  uint32_t passed_over_ = 0; ///< slices since one of `later_`, while it waits
};

} // namespace terrace
