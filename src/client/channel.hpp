// One socket of a connection, from its handshake to its end, and the requests in flight on it.
//
// Used by one thread at a time. A round trip without a deadline is one sendmsg and one recvmsg: the socket
// blocks. poll is called only if there is a deadline, or if sending would block, because then answers must be
// received meanwhile: otherwise client and daemon would each wait for the other to read.
#pragma once

#include "base/busy_poll.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "client/segments.hpp"
#include "client/types.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::client::detail {

// ---- Unix sockets ----

/// A connected stream socket, close-on-exec, blocking. `gone` if nobody listens there.
result<unique_fd> connect_socket(const std::string& path, deadline until);

/// Requests buffers of this size; less is acceptable.
void ask_for_buffers(int socket, uint32_t bytes);

/// Waits for one of poll(2)'s `events` or an error and returns what is ready; 0 after the deadline. Checks
/// once even if the deadline has passed.
result<short> wait_for(int socket, short events, deadline until, on_signal signals = on_signal::goes_on);

/// The remaining time for the wire: 0 for no deadline, otherwise at least 1.
uint32_t milliseconds_left(deadline until);

// ---- the channel ----

/// An answer, or an error frame. The body is valid until the channel's next call.
struct answer {
  protocol::kind kind{};
  std::span<const uint8_t> body;
  protocol::descriptor_list descriptors;
};

class channel {
 public:
  /// `busy_poll`: see connect_options.
  explicit channel(unique_fd socket, std::chrono::nanoseconds busy_poll = {});

  bool alive() const { return !gone_; }
  /// Why the daemon ended the connection, if it did and said so: such as `busy` or `denied` instead of a handshake.
  std::optional<errc> refusal() const { return refusal_; }
  /// Stays open, and readable, when the daemon is lost; -1 after `end`.
  int descriptor() const { return socket_.get(); }
  result<void> state() const;

  /// The daemon is lost, or violated the protocol: nothing is sent or received any more, and requests in flight fail
  /// with `gone`.
  void lose(std::string reason);

  /// Closes the channel, on its owner's request.
  void end(std::string reason);

  /// Call after the handshake.
  void set_credits(uint32_t requests, uint64_t bytes, uint64_t frame_bytes_max);

  /// Sends a request whose body is built by `build(FlatBufferBuilder&)`, and returns its id. Waits for
  /// credits.
  template <class Build>
  result<uint64_t> submit(protocol::kind kind, Build&& build, deadline until,
                          std::span<const int> descriptors = {}) {
    if (gone_)
      return tl::unexpected<error>(*gone_);
    uint64_t id = open_slot(kind);
    builder_.finish(kind, id, build(builder_.start()), static_cast<uint16_t>(descriptors.size()));
    return send(id, descriptors, until);
  }

  /// Sends a request without waiting for its answer: never blocks, and does nothing on a closed channel.
  template <class Build>
  void post(protocol::kind kind, Build&& build) {
    if (gone_)
      return;
    uint64_t id = open_slot(kind);
    posts_.finish(kind, id, build(posts_.start()));
    send_unwatched(id);
  }
  void post_release(const lease_id& lease);
  void post_abort(uint64_t reservation);
  void post_cancel(uint64_t request);

  /// Waits for the answer to a request, whose id is then released. Fails with `deadline` (the request is
  /// still in flight and can be waited for again) or `gone` (the id is released).
  result<answer> wait(uint64_t id, deadline until);

  /// Receives available answers, or waits for one if there are requests in flight. Returns the number of answers received, or `gone`.
  result<uint32_t> poll(deadline until, on_signal signals);

  bool ready(uint64_t id);

  /// True if the daemon has not answered the request, whether or not anybody wants the answer.
  bool in_flight(uint64_t id);

  /// Precondition: the answer to the request was not taken yet.
  protocol::kind request_of(uint64_t id) { return find(id)->request; }

  /// Drops the request's answer, and releases what it holds.
  void forget(uint64_t id);

  const std::shared_ptr<segments>& mapped() const { return segments_; }

 private:
  enum class slot_state : uint8_t { free, waiting, answered, forgotten };

  /// A request id is a slot's index and its generation, so that an answer finds its request without a search.
  struct slot {
    uint64_t generation = 1;
    slot_state state = slot_state::free;
    protocol::kind request{};
    uint64_t bytes = 0; ///< bytes of its frame, while in flight
    protocol::kind answer_kind{};
    std::vector<uint8_t> body; ///< body of an answer that arrived while another one was awaited
    protocol::descriptor_list descriptors;

    bool copies_payloads() const {
      return request == protocol::kind::load || request == protocol::kind::store;
    }
  };
  static constexpr unsigned index_bits = 20;

  uint64_t open_slot(protocol::kind request);
  slot* find(uint64_t id);
  void close_slot(uint64_t id);

  result<uint64_t> send(uint64_t id, std::span<const int> descriptors, deadline until);
  void send_unwatched(uint64_t id);
  result<void> wait_for_credits(protocol::kind verb, uint64_t bytes, deadline until);
  result<size_t> send_some(std::span<const uint8_t> bytes, std::span<const int> descriptors);
  bool must_flush() const { return !outbox_.empty() && !inside_frame_; }
  result<void> flush();
  result<void> make_room(deadline until);
  void lost_while_sending(int reason);

  result<void> receive(deadline until, on_signal signals = on_signal::goes_on);
  bool may_poll(const deadline& until);
  bool polls_on(const deadline& until);
  void end_polling(bool paid);
  bool belongs(const protocol::frame& frame);
  uint32_t take_in();
  void keep(protocol::frame& frame);
  void drop(protocol::kind kind, std::span<const uint8_t> body);

  unique_fd socket_;
  std::optional<error> gone_;
  std::optional<errc> refusal_;
  protocol::frame_decoder decoder_;
  protocol::frame_builder builder_;
  protocol::frame_builder posts_; ///< separate, because posts happen while a request is being sent
  /// What to send before anything else: the rest of a partial frame, and posts.
  std::vector<uint8_t> outbox_;
  bool inside_frame_ = false;
  std::vector<slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint8_t> taken_; ///< body of the answer last returned by `wait`, if it was stored
  uint32_t in_flight_ = 0;
  uint64_t in_flight_bytes_ = 0;
  /// Loads and stores in flight. While there are any, this thread sleeps in poll: recvmsg would also wake it
  /// when the daemon has read what was sent, for nothing, and would take a processor away from a copy. For
  /// short requests the extra system call does not pay, because they are answered before the woken thread
  /// sleeps again (decision 112).
  uint32_t copies_in_flight_ = 0;
  uint32_t credit_requests_ = 1;
  uint64_t credit_bytes_ = protocol::hello_bytes_max;
  uint64_t frame_bytes_max_ = protocol::hello_bytes_max;
  terrace::busy_poll polling_;
  preemption_count preemptions_;
  std::shared_ptr<segments> segments_ = std::make_shared<segments>();
};

} // namespace terrace::client::detail
