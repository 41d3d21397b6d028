// The life of a connection: decides what it does when frames are sent, when its socket closes, and when the
// daemon shuts down.
//
// Pure: the connection reports events, and does what this class returns. Used by one thread at a time.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "connection/arriving_request.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace terrace {

// Work of requests that waits until clients' memory is unmapped.

/// The teardown's thread owns the work. If a request ends meanwhile, its work goes on early in order to
/// refuse it; a prefetch learns of its end in the same way. Used by the connection's thread only.
class teardown_queue {
 public:
  using work = std::shared_ptr<std::function<void()>>;

  void add(const context_ptr& context, const work& job) {
    std::erase_if(waiting_, [](const entry& each) { return each.work.expired(); });
    waiting_.push_back({context, job});
  }

  /// Returns the work of requests that have ended.
  std::vector<work> take_ended() {
    std::vector<work> ended;
    std::erase_if(waiting_, [&ended](const entry& each) {
      if (auto context = each.context.lock(); context && context->live())
        return false;
      if (auto what = each.work.lock())
        ended.push_back(std::move(what));
      return true;
    });
    return ended;
  }

  size_t size() const { return waiting_.size(); }

 private:
  struct entry {
    /// The holder of the work keeps the request alive and counts as in progress.
    std::weak_ptr<request_context> context;
    std::weak_ptr<std::function<void()>> work;
  };
  std::vector<entry> waiting_;
};

// The time limits that a connection sets its client.

/// A connection limits the time for the handshake, for the rest of a frame that has begun, and for the client
/// to read its last frame. Answers may stay unread as long as the group's memory has room. Pure: time is an
/// argument.
class client_deadlines {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr time_point never = time_point::max();

  /// `unread`: how long a client may leave its answers unread while the group's memory is full.
  explicit client_deadlines(std::chrono::milliseconds unread) : unread_(unread) {}

  /// Ends the connection at that time unless its client moves on.
  void end_by(time_point at) { end_ = at; }
  void moved_on() { end_ = never; }
  bool has_end() const { return end_ != never; }
  time_point end() const { return end_; }
  bool is_over(time_point now) const { return now >= end_; }
  /// Returns the reason for which an overdue connection ends. Precondition: it is not `closing`.
  static error overdue(connection_phase phase) {
    return {errc::deadline, phase == connection_phase::handshake
                                ? "expected hello within a third of connection.request_deadline"
                                : "expected the rest of a frame within connection.request_deadline"};
  }

  /// The client took bytes of an answer, or the first answer began to be sent.
  void took(time_point now) { took_ = now; }
  /// Whether a client with answers in sending has left them unread for too long.
  bool leaves_unread(time_point now) const { return took_ + unread_ <= now; }
  static error unread() {
    return {errc::busy, "the requests of this trust group take connection.group_bytes, and this client has "
                        "not read its answers for connection.request_deadline: expected it to read"};
  }

  /// Returns when to check again. `sending`: answers are being sent.
  time_point next(time_point now, bool sending) const {
    if (!sending)
      return end_;
    return std::min(end_, (leaves_unread(now) ? now : took_) + unread_);
  }

 private:
  std::chrono::milliseconds unread_;
  time_point end_ = never;
  time_point took_{};
};

class connection_life {
 public:
  using phase = connection_phase;

  /// `pid`: the client's process; 0 if it is in a PID namespace that is not visible. `watched`: the daemon
  /// notices the end of the process.
  connection_life(pid_t pid, bool watched) : pid_(pid), watched_(watched) {}

  phase now() const { return now_; }
  bool observes() const { return observes_; } ///< it may only look and administer
  bool reads() const { return now_ <= phase::draining; }
  bool ends() const { return now_ >= phase::closing; } ///< no more answers are sent

  enum class next : uint8_t {
    go_on,
    say_goodbye, ///< the daemon shuts down and nothing is in flight: send `shutting_down`, then close
    finish,      ///< the socket is closed or of no more use
    quit,
  };
  static error shutting_down() { return {errc::gone, "the daemon is shutting down"}; }

  /// Hello was answered. `observes`: the connection may only look and administer.
  void greeted(bool observes) {
    observes_ = observes;
    if (now_ == phase::handshake)
      now_ = phase::serving;
  }

  /// A send has completed. `open`: it succeeded. `sending`: another send is in progress. `idle`: no request
  /// is in flight.
  next sent(bool open, bool sending, bool idle) const {
    if (!open || (now_ == phase::closing && !sending))
      return next::finish;
    return now_ == phase::draining && idle ? next::say_goodbye : next::go_on;
  }

  /// The peer has closed its end, or, with `both_ways`, the socket is dead. A receive that is in the ring
  /// reports the end itself, after everything that came before it. A client that has only stopped sending can
  /// still read why its connection ends.
  next hung_up(bool both_ways, bool receiving) const {
    if (now_ == phase::quarantined)
      return next::go_on;
    return (now_ == phase::closing ? both_ways : !receiving) ? next::finish : next::go_on;
  }

  /// No new requests are accepted. `idle`: no request is in flight.
  next drain(bool idle) {
    daemon_ends_ = true;
    if (now_ == phase::quarantined)
      return next::quit;
    if (now_ > phase::serving)
      return next::go_on;
    now_ = phase::draining;
    return idle ? next::say_goodbye : next::go_on;
  }

  /// Called when the last frame is about to be sent. Returns false if the connection was closing before.
  bool close() {
    if (ends())
      return false;
    now_ = phase::closing;
    return true;
  }

  /// Returns the error with which the connection makes room for another one; nullopt if it is ending already.
  std::optional<error> leave() const {
    if (now_ >= phase::draining)
      return std::nullopt;
    return error{errc::busy,
                 observes_
                     ? "as many observers are connected as the daemon allows: a newer one takes this place"
                     : "as many silent connections exist as connection.connections_max: expected hello "
                       "as soon as a connection is open"};
  }

  /// The socket is closed. `reads_on`: the process has leases whose objects it may be reading through its
  /// mapping. Returns true if the leases are kept until the process dies or confirms, because clients'
  /// mappings outlive the daemon's.
  bool quarantine(bool reads_on) {
    bool kept = reads_on && watched_ && !daemon_ends_;
    now_ = kept ? phase::quarantined : phase::closing;
    return kept;
  }

  /// The process `pid` no longer reads anything of this connection. Processes in an invisible PID namespace
  /// all have the number 0, so only their end counts.
  next confirmed(pid_t pid) const {
    return now_ == phase::quarantined && pid != 0 && pid == pid_ ? next::quit : next::go_on;
  }

  /// The process has ended, even if others still have the socket open.
  void process_ended() { now_ = phase::closing; }

 private:
  pid_t pid_;
  bool watched_;
  phase now_ = phase::handshake;
  bool observes_ = false;
  bool daemon_ends_ = false;
};

} // namespace terrace
