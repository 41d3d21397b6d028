// The shared state of a client request.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace terrace {

// Names the trust group and the connection for whom work is done.

/// Fairness is between trust groups, and within a group between its connections (base/fair_queue.hpp). The
/// daemon's own work has connection 0, and group 0 if it is for no group.
struct flow {
  uint64_t group = 0;
  uint64_t connection = 0;
  friend bool operator==(const flow&, const flow&) = default;
};

/// Counts requests whose context somebody in this process still holds: as long as one is held, the daemon may
/// be working for it. Safe on any thread.
class work_mark {
 public:
  work_mark() = default;
  work_mark(const work_mark&) = delete;
  work_mark& operator=(const work_mark&) = delete;
  ~work_mark() { end(); }
  /// The request counts from now on.
  void begin() {
    counts_ = true;
    begun_.fetch_add(1);
    in_progress_.fetch_add(1);
  }
  /// The request counts no longer: it waits for something that may never happen, and holds nothing. Called by
  /// its connection.
  void end() {
    if (std::exchange(counts_, false))
      in_progress_.fetch_sub(1);
  }

  struct tally {
    uint64_t begun = 0; ///< contexts counted since the start
    uint64_t in_progress = 0;
  };
  static tally now() { return {begun_.load(), in_progress_.load()}; }

 private:
  bool counts_ = false;
  static inline std::atomic<uint64_t> begun_{0}, in_progress_{0};
};

/// One client request. The connection ends it early (cancel, deadline, client death); every actor that works
/// or waits for it checks it before it continues. Any thread may read and write `ended`; the other members
/// are set before the context is shared.
struct request_context {
  uint64_t group = 0; ///< number of its trust group
  connection_id connection{};
  request_id request = 0;
  bool ahead =
      false; ///< no client waits for it, as with a prefetch: demand goes first (allocation_queue, io_class)
  uint8_t priority = 128; ///< a hint to the policy; smaller is more urgent
  uint64_t inference = 0; ///< the client's number of the inference request; 0: not given
  std::string trace;      ///< the client's name of the request, for logs and error texts; may be empty
  work_mark work;         ///< begins with the request; the daemon's own work without a request has none
  std::atomic<errc> ended{errc::ok}; ///< ok while the request is active; otherwise why it ended
  bool live() const { return ended.load(std::memory_order_relaxed) == errc::ok; }
};
using context_ptr = std::shared_ptr<request_context>;

/// Why work for the request (`what`: a load, a store) must end; ok while it is active. `context` may be null.
inline error why_ended(const context_ptr& context, const char* text) {
  if (!context || context->live())
    return {};
  return {context->ended.load(), std::string("the request ended before its ") + text + " was complete"};
}

/// `context` is null for the daemon's own work.
inline flow flow_of(const context_ptr& context) {
  return context ? flow{context->group, static_cast<uint64_t>(context->connection)} : flow{};
}

} // namespace terrace
