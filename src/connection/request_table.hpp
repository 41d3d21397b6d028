// The requests in flight of one connection: credits, deadlines, early ends, and answers.
//
// Pure: no actor, and time is an argument. Used by one thread at a time. A request is in flight from `begin`
// until its answer is in the socket (`sent`), so that a client that does not read gets no more credit.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "protocol/kinds.hpp"
#include "base/request_context.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

class request_table {
 public:
  using clock = std::chrono::steady_clock;

  struct bounds {
    uint32_t requests = 0; ///< in flight
    uint64_t bytes = 0;    ///< of their frames, of what is made from them, and of their answers
    std::chrono::milliseconds deadline{}; ///< of requests without their own
    std::chrono::milliseconds deadline_max = std::chrono::milliseconds::max(); ///< a later one is this one
  };

  request_table(connection_id owner, const bounds& most) : owner_(owner), most_(most) {}

  /// True if another request may be read.
  bool has_credit() const { return requests_.size() < most_.requests && bytes_ < most_.bytes; }
  /// True if a request with this frame may be read: without credit, still a few that give something back.
  bool may_begin(protocol::kind verb, uint64_t bytes) const;

  bool contains(request_id id) const { return requests_.contains(id); }
  size_t size() const { return requests_.size(); }
  bool empty() const { return requests_.empty(); }

  /// Precondition: no such request is in flight. `bytes`: size of its frame.
  context_ptr begin(request_id id, protocol::kind verb, uint64_t bytes, clock::time_point now);

  /// The request takes so much more memory until its answer is in the socket. No effect if it is not in flight. `apart`:
  /// its trust group counts that memory separately, see `take_objects`.
  void charge(request_id id, uint64_t bytes, bool apart = false);
  /// The same for what it is not known yet to take: charges that follow are counted against it first.
  void expect(request_id id, uint64_t bytes);
  /// All that it takes has been charged: what remains expected is given back.
  void settle(request_id id);
  uint64_t bytes() const { return bytes_; } ///< of all requests in flight
  /// What their trust group counts with the frames, see request_memory.hpp.
  uint64_t group_bytes() const { return bytes_ - apart_; }

  /// The request has taken so much of its group's memory for its objects; once.
  void took_objects(request_id id, uint64_t bytes);
  /// What it took, which is to be given back now.
  uint64_t take_back_objects(request_id id);
  uint64_t objects_taken() const { return objects_; } ///< by all in flight

  /// What was counted again beside what is kept; a sentence for each difference.
  std::vector<std::string> check() const;

  /// Replaces the default time limit, counted from the arrival; at most `bounds::deadline_max`. Returns the time at
  /// which the request ends; nullopt if it is not in flight.
  std::optional<clock::time_point> set_deadline(request_id id, std::chrono::milliseconds after_arrival);

  /// The request is being answered. Returns how long it took; nullopt if it needs no answer any more: it has
  /// one, or is not in flight (its id may have been reused).
  std::optional<clock::duration> answer(request_id id, const context_ptr& context, clock::time_point now);

  /// Its answer is in the socket: its credit is released.
  void sent(request_id id);

  enum class cancelled { unknown, before, now };
  /// Ends a request early; it is still answered. `unknown`: not in flight, or answered. `before`: it had
  /// already ended.
  cancelled cancel(request_id id, errc why);

  /// Those with this verb that have no answer yet.
  std::vector<request_id> of(protocol::kind verb) const {
    std::vector<request_id> found;
    for (const auto& [id, entry] : requests_)
      if (entry.verb == verb && !entry.answered)
        found.push_back(id);
    return found;
  }

  struct expiry {
    bool any = false;                                  ///< some ended now, with `errc::deadline`
    clock::time_point next = clock::time_point::max(); ///< the first remaining deadline
  };
  expiry expire(clock::time_point now);

  /// The connection ends: so do all requests with `errc::gone`, unanswered. `unanswered(verb, age)` is called for each that had
  /// no answer. True: some were active until now, and other actors may wait for them.
  template <class F>
  bool end_all(clock::time_point now, F&& unanswered) {
    bool any = false;
    for (auto& [id, entry] : requests_) {
      any = end(entry, errc::gone) || any;
      if (!entry.answered)
        unanswered(entry.verb, now - entry.arrived);
    }
    requests_.clear();
    bytes_ = 0;
    apart_ = 0;
    objects_ = 0;
    return any;
  }

 private:
  friend struct damaged_requests; ///< tests break it
  struct in_flight {
    context_ptr context;
    protocol::kind verb{};
    clock::time_point arrived;
    clock::time_point deadline;
    uint64_t bytes = 0;
    uint64_t expected = 0; ///< of `bytes`, what no charge has used up
    uint64_t apart = 0;    ///< of `bytes`, with what is expected
    uint64_t objects = 0;  ///< of the group's memory
    bool answered = false; ///< its answer is being sent
  };

  /// Returns true once per request.
  static bool end(in_flight& entry, errc why) {
    errc expected = errc::ok;
    return entry.context->ended.compare_exchange_strong(expected, why);
  }

  connection_id owner_;
  bounds most_;
  std::map<request_id, in_flight> requests_;
  uint64_t bytes_ = 0;
  uint64_t apart_ = 0;
  uint64_t objects_ = 0;
};

} // namespace terrace
