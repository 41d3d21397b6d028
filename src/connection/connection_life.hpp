// The life of a connection: decides what it does when frames are sent, when its socket closes, and when the
// daemon shuts down.
//
// Pure: the connection reports events, and does what this class returns. Used by one thread at a time.
#pragma once

#include "base/error.hpp"
#include "connection/arriving_request.hpp"

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace terrace {

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
