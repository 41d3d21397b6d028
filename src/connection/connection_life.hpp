// The life of a connection: what follows for it when frames are sent, when its socket closes, when the daemon shuts down.
//
// Pure: the connection reports events, and does what follows. Used by one thread at a time.
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

  /// `pid`: of the client's process; 0: it is in a PID namespace that is not visible. `watched`: its end is noticed.
  connection_life(pid_t pid, bool watched) : pid_(pid), watched_(watched) {}

  phase now() const { return now_; }
  bool observes() const { return observes_; } ///< it may only look and administer
  bool reads() const { return now_ <= phase::draining; }
  bool ends() const { return now_ >= phase::closing; } ///< no answers are sent any more

  enum class next : uint8_t {
    go_on,
    say_goodbye, ///< nothing is in flight, and the daemon shuts down: send `shutting_down`, then close
    finish,      ///< the socket is closed, or of no use any more
    quit,
  };
  static error shutting_down() { return {errc::gone, "the daemon is shutting down"}; }

  /// Hello is answered. `observes`: it may only look and administer.
  void greeted(bool observes) {
    observes_ = observes;
    if (now_ == phase::handshake)
      now_ = phase::serving;
  }

  /// A send has completed. `open`: it succeeded. `sending`: more is being sent. `idle`: no request is in flight.
  next sent(bool open, bool sending, bool idle) const {
    if (!open || (now_ == phase::closing && !sending))
      return next::finish;
    return now_ == phase::draining && idle ? next::say_goodbye : next::go_on;
  }

  /// The peer has closed its end, or, with `both_ways`, the socket is dead. While a receive is in the ring, it reports the
  /// end, after what came before it. A client that only sends no more may still read why it is ended.
  next hung_up(bool both_ways, bool receiving) const {
    if (now_ == phase::quarantined)
      return next::go_on;
    return (now_ == phase::closing ? both_ways : !receiving) ? next::finish : next::go_on;
  }

  /// No new requests. `idle`: no request is in flight.
  next drain(bool idle) {
    daemon_ends_ = true;
    if (now_ == phase::quarantined)
      return next::quit;
    if (now_ > phase::serving)
      return next::go_on;
    now_ = phase::draining;
    return idle ? next::say_goodbye : next::go_on;
  }

  /// Its last frame is sent. False: it was before.
  bool close() {
    if (ends())
      return false;
    now_ = phase::closing;
    return true;
  }

  /// Why it ends because another connection needs its place; nullopt: it ends already.
  std::optional<error> leave() const {
    if (now_ >= phase::draining)
      return std::nullopt;
    return error{errc::busy,
                 observes_
                     ? "as many observers are connected as the daemon allows: a newer one takes this place"
                     : "as many silent connections exist as connection.connections_max: expected hello "
                       "as soon as a connection is open"};
  }

  /// The socket is closed. `reads_on`: the process holds leases whose objects it may be reading through its mapping. True:
  /// they are kept until it dies or confirms. Mappings of clients outlive the daemon's.
  bool quarantine(bool reads_on) {
    bool kept = reads_on && watched_ && !daemon_ends_;
    now_ = kept ? phase::quarantined : phase::closing;
    return kept;
  }

  /// The process `pid` reads nothing of this connection any more. Processes of an invisible PID namespace all have the
  /// number 0: only their ends count.
  next confirmed(pid_t pid) const {
    return now_ == phase::quarantined && pid != 0 && pid == pid_ ? next::quit : next::go_on;
  }

  /// The process has ended, even if others have the socket open.
  void process_ended() { now_ = phase::closing; }

 private:
  pid_t pid_;
  bool watched_;
  phase now_ = phase::handshake;
  bool observes_ = false;
  bool daemon_ends_ = false;
};

} // namespace terrace
