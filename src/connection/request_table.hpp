// The requests in flight of one connection: credits, deadlines, early ends, and answers.
//
// Pure: no actor, and time is an argument. Used by one thread at a time. A request is in flight from `begin`
// until its answer is in the socket (`sent`), so a client that does not read gets no more credit.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/request_context.hpp"
#include "protocol/kinds.hpp"

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
    uint32_t requests = 0; ///< requests in flight
    uint64_t bytes = 0;    ///< bytes of their frames, of what is made from them, and of their answers
    std::chrono::milliseconds deadline{}; ///< deadline of requests without their own
    /// A later deadline is reduced to this one.
    std::chrono::milliseconds deadline_max = std::chrono::milliseconds::max();
  };

  request_table(connection_id owner, const bounds& most) : owner_(owner), most_(most) {}

  /// True if another request may be read.
  bool has_credit() const { return requests_.size() < most_.requests && bytes_ < most_.bytes; }
  /// True if a request with this frame may be read. Without credit, a few requests that give something back
  /// still may.
  bool may_begin(protocol::kind verb, uint64_t bytes) const;

  bool contains(request_id id) const { return requests_.contains(id); }
  size_t size() const { return requests_.size(); }
  bool empty() const { return requests_.empty(); }

  /// Precondition: no request with this id is in flight. `bytes`: size of its frame.
  context_ptr begin(request_id id, protocol::kind verb, uint64_t bytes, clock::time_point now);

  /// Until its answer is in the socket, the request takes this many more bytes. No effect if it is not in
  /// flight. `apart`: its trust group counts these bytes separately, see `charge_objects`.
  void charge(request_id id, uint64_t bytes, bool apart = false);
  /// Reserves bytes that the request may take. Later charges are counted against them first.
  void expect(request_id id, uint64_t bytes);
  /// All charges of the request are made: what remains expected is given back.
  void settle(request_id id);
  uint64_t bytes() const { return bytes_; } ///< bytes of all requests in flight
  /// Bytes that the trust group counts with the frames, see request_memory.hpp.
  uint64_t group_bytes() const { return bytes_ - apart_; }

  /// The request has taken memory of its group for its objects. Called once.
  void took_objects(request_id id, uint64_t bytes);
  /// Returns the bytes that the request took, which the caller gives back now.
  uint64_t return_objects(request_id id);
  uint64_t objects_taken() const { return objects_; } ///< bytes of objects taken by all requests in flight

  /// Recounts the requests and returns a sentence for each difference from the kept sums.
  std::vector<std::string> check() const;

  /// Replaces the default time limit. It counts from the arrival and is at most `bounds::deadline_max`.
  /// Returns the time at which the request ends; nullopt if it is not in flight.
  std::optional<clock::time_point> set_deadline(request_id id, std::chrono::milliseconds after_arrival);

  /// A part of the request, whose outcome the request uses, ends with `errc::deadline` when three quarters of the time that the
  /// request has left are over, and with the request at the latest. A request has one part at a time. Returns when the part ends;
  /// nullopt if the request is not in flight or has ended: then the part has not begun.
  /// `part`: null: the request has what it wanted of it.
  std::optional<clock::time_point> set_part(request_id id, const context_ptr& part, clock::time_point now);

  /// Begins to answer the request. Returns how long it took; nullopt if it needs no answer, because it has
  /// one or is not in flight (its id may have been reused).
  std::optional<clock::duration> answer(request_id id, const context_ptr& context, clock::time_point now);

  /// The answer is in the socket: the request's credit is released.
  void sent(request_id id);

  enum class cancelled { unknown, before, now };
  /// Ends a request early; it is still answered. `unknown`: it is not in flight, or already answered.
  /// `before`: it had already ended.
  cancelled cancel(request_id id, errc why);

  /// Requests of this verb that have no answer yet.
  std::vector<request_id> of(protocol::kind verb) const {
    std::vector<request_id> found;
    for (const auto& [id, entry] : requests_)
      if (entry.verb == verb && !entry.answered)
        found.push_back(id);
    return found;
  }

  struct expiry {
    bool any = false; ///< some requests, or parts of them, ended now, with `errc::deadline`
    clock::time_point next = clock::time_point::max(); ///< the earliest remaining deadline
  };
  expiry expire(clock::time_point now);

  /// Ends all requests with `errc::gone`, unanswered, because the connection ends. `unanswered(verb, age)` is
  /// called for each request without an answer. Returns true if some were active until now, so that other
  /// actors may wait for them.
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
  friend struct damaged_requests; ///< tests damage it
  struct in_flight {
    context_ptr context;
    protocol::kind verb{};
    clock::time_point arrived;
    clock::time_point deadline;
    uint64_t bytes = 0;
    uint64_t expected = 0; ///< the part of `bytes` that no charge has used up
    uint64_t apart = 0;    ///< the part of `bytes`, including expected ones, that the group counts separately
    uint64_t objects = 0;  ///< bytes of the group's memory taken for objects
    bool answered = false; ///< its answer is being sent
    context_ptr part;      ///< null: it has none
    clock::time_point part_until{};
  };

  /// Returns true once per request.
  static bool end(in_flight& entry, errc why) {
    if (entry.part)
      end(*entry.part, why);
    return end(*entry.context, why);
  }
  static bool end(request_context& of, errc why) {
    errc expected = errc::ok;
    return of.ended.compare_exchange_strong(expected, why);
  }

  connection_id owner_;
  bounds most_;
  std::map<request_id, in_flight> requests_;
  uint64_t bytes_ = 0;
  uint64_t apart_ = 0;
  uint64_t objects_ = 0;
};

} // namespace terrace
