// The time limits that a connection sets its client.
#pragma once

#include "base/error.hpp"
#include "connection/arriving_request.hpp"

#include <algorithm>
#include <chrono>

namespace terrace {

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
                                ? "expected hello within connection.handshake_deadline"
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

} // namespace terrace
