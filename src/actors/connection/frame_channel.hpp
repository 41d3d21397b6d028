// Both directions of a connection's socket: frames in and out, each with at most one operation in the ring.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"
#include "base/unique_fd.hpp"
#include "memory/teardown.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_control_block.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace terrace {

// The process at the other end of a socket.

struct peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::shared_ptr<unique_fd> pidfd; ///< readable when the process has ended
};

/// The pidfd comes from the socket if the kernel supports it (Linux 6.5), so that it refers to the process that
/// connected even if its number has been reused. Nullopt: it has already ended.
std::optional<peer> identify_peer(int socket);

/// Sends the error, as far as the client's socket accepts it. The caller closes the socket.
void turn_away(const unique_fd& socket, const error& why);

/// The tags of a connection's operations.
namespace io_tag {
constexpr uint64_t receive = 1;
constexpr uint64_t send = 2;
constexpr uint64_t peer_exit = 3;
constexpr uint64_t timer = 4;
constexpr uint64_t hang_up = 5;
constexpr uint64_t bell = 6; ///< not the channel's
} // namespace io_tag

/// A finished frame, its descriptors, and the request it answers.
struct outgoing_frame {
  std::unique_ptr<protocol::frame_builder> builder;
  std::vector<unique_fd> descriptors;
  uint64_t request = 0;
};

/// Belongs to one connection actor. Memory accessed by the kernel is in records shared with the ring and
/// outlives it.
class frame_channel {
 public:
  frame_channel(unique_fd socket, runtime::io_port& port, caf::strong_actor_ptr owner,
                const teardown_ptr& teardown = nullptr);
  ~frame_channel();

  // ---- in ----

  /// Submits a receive unless one is in the ring.
  void receive();
  /// The completion of `io_tag::receive`. False: end of file, or the peer is gone. Errors: the peer violated
  /// the protocol.
  result<bool> received(int32_t result);
  /// The next whole frame, if there is one; its body is valid until the next `receive`, or as long as the
  /// result of `hold`.
  std::optional<protocol::frame> next() { return in_->decoder.next(); }
  /// The header of the frame that `next` returns, or will return when the rest of it has come.
  std::optional<protocol::frame_header> peek() const { return in_->decoder.peek(); }
  std::shared_ptr<const void> hold() { return in_->decoder.hold(); }
  bool receiving() const { return in_->armed; }
  /// Submits a poll for the peer's end of the stream, unless one is in the ring: for as long as nothing is received.
  void watch_hang_up();
  /// The completion of `io_tag::hang_up`. True: the peer has closed, or sends no more.
  bool hung_up(int32_t result);
  size_t pending_bytes() const { return in_->decoder.pending_bytes(); }
  void set_frame_bytes_max(uint64_t bytes) { in_->decoder.set_frame_bytes_max(bytes); }

  // ---- out ----

  /// A builder for the next frame.
  std::unique_ptr<protocol::frame_builder> builder();
  /// `later`: not before `send_line`.
  void send(outgoing_frame frame, bool later = false);
  /// Frames wait for `send_line`.
  bool waits() const { return !line_.empty() && !out_->armed; }
  /// Submits frames that wait. Answers that are few bytes, without descriptors, count as sent: their requests are added to
  /// `done`, and `io_tag::send` completes only if the socket does not take all of them at once. `last`: the channel is shut when all is
  /// sent, so nothing counts as sent before it is.
  void send_line(std::vector<uint64_t>& done, bool last = false);
  /// The completion of `io_tag::send`: adds to `done` the requests whose answers the kernel has accepted.
  /// False: the peer accepts no more.
  bool sent(int32_t result, std::vector<uint64_t>& done);
  bool sending() const { return out_->armed; }

  /// Ends both directions; operations in the ring complete early, and frames that wait are gone.
  void shut();
  /// Keeps it until what is being sent is freed, which may be after the channel's end.
  void keep_while_sending(keep_alive kept);

  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;

 private:
  struct incoming {
    std::shared_ptr<unique_fd> socket;
    protocol::frame_decoder decoder;
    protocol::incoming_message message;
    bool armed = false;
  };
  struct outgoing {
    keep_alive kept; ///< first, to end last
    std::shared_ptr<unique_fd> socket;
    protocol::outgoing_message message;
    std::vector<outgoing_frame> frames; ///< being sent
    std::vector<uint8_t> joined;        ///< their bytes if there are several
    std::span<const uint8_t> left;      ///< not sent yet
    bool armed = false;                 ///< a completion will come
    bool counted = false;               ///< the frames count as sent
    runtime::quiet_send quiet;
  };
  std::vector<int> join_line();
  bool may_be_quiet() const;
  void announce();
  void reclaim_sent();
  void send_more();
  void submit_send(std::span<const int> descriptors);

  runtime::io_port& port_;
  caf::strong_actor_ptr owner_;
  std::shared_ptr<unique_fd> socket_;
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  bool watching_ = false; ///< a poll is in the ring
  std::deque<outgoing_frame> line_;
  std::vector<std::unique_ptr<protocol::frame_builder>> builders_; ///< idle ones
};

} // namespace terrace
