// INBOX of a client: its frames in and out, the requests in flight, their credit, memory and deadlines, and the life of its
// socket.
//
// Requests that may begin go to the owner (connection.hpp), which answers them now or later. It belongs to the actor of its
// connection.
#pragma once

#include "actors/connection/connected_client.hpp"
#include "actors/connection/frame_channel.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/request_context.hpp"
#include "connection/arriving_request.hpp"
#include "connection/connection_life.hpp"
#include "connection/reading_gate.hpp"
#include "connection/request_table.hpp"
#include "connection/waiting_requests.hpp"
#include "protocol/kinds.hpp"
#include "protocol/verify.hpp"
#include "runtime/io_port.hpp"
#include "runtime/task.hpp"

#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace terrace::actors {

// Where a request goes on that waits for something, and what identifies it meanwhile.

class client_request;

/// A request in flight, for those who answer it.
struct request_entry {
  request_id id{};
  protocol::kind kind{};
  context_ptr context;
};

/// A suspended frame of a request. Copies may outlive the request.
class continuation {
 public:
  template <class Promise>
  continuation(client_request& request, std::coroutine_handle<Promise> frame)
      : request_(&request), link_(frame.promise().link), frame_(frame) {}

  /// False: the request's coroutine has been destroyed.
  bool alive() const { return link_->alive(); }
  /// Resumes the frame, if it is still there.
  void go_on() const {
    auto link = link_; // `this` may be in the frame
    if (link->alive())
      link->resume(frame_);
  }
  /// Refuses the request and destroys its coroutine, if it is still there.
  void fail(const error& why) const;

 private:
  client_request* request_;
  std::shared_ptr<task_link> link_;
  std::coroutine_handle<> frame_;
};

/// Bytes of credit that an object of a request costs: its key, parent, size, place and location.
constexpr uint64_t object_credit = 160;

class client_inbox {
 public:
  /// The connection.
  class owner {
   public:
    /// A request that may begin.
    virtual void serve(const request_entry& entry, protocol::frame& frame) = 0;
    /// The request was answered without having begun.
    virtual void refused(const request_entry& entry, const protocol::frame& frame) = 0;
    /// Some requests have ended early.
    virtual void requests_ended() = 0;
    /// The socket closes: everything is released, except what a living client may still be reading. It has answered its last
    /// request.
    virtual void close() = 0;
    /// The connection ends.
    virtual void quit() = 0;
    /// Calls `work` on the connection, from any thread.
    virtual std::function<void()> on_any_thread(std::function<void()> work) = 0;

   protected:
    ~owner() = default;
  };

  client_inbox(owner& of, connected_client& client, unique_fd socket, runtime::io_port& port,
               const caf::strong_actor_ptr& actor);

  // ---- for its connection ----

  void begin();
  void received(int32_t bytes);
  void sent(int32_t bytes);
  void hung_up(int32_t events);
  void timer();
  void process_ended();      ///< even if others have the socket open
  void drain();              ///< no new requests; close when those in flight are answered
  void leave();              ///< for another, because it is silent or only observes
  void confirmed(pid_t pid); ///< a process reads nothing of this connection any more
  /// Everything that it keeps for requests is given back, and the socket is shut. True: some were in flight.
  bool close();
  void begin_turn() { in_turn_ = looks_up_ = true; }
  /// Sends what was answered in this turn.
  void end_turn();
  bool in_turn() const { return in_turn_; }
  /// True once in a turn: a client that sends many requests together does not make a long one of it.
  bool may_look_up_at_once() { return in_turn_ && std::exchange(looks_up_, false); }

  // ---- requests ----

  std::unique_ptr<protocol::frame_builder> builder() { return channel_->builder(); }
  /// Dropped, if the request has ended.
  void answer(const request_entry& entry, errc outcome, std::unique_ptr<protocol::frame_builder> frame,
              std::vector<unique_fd> descriptors);
  void refuse(const request_entry& entry, const error& why);
  /// Answers a request whose contents are wrong; if it is the handshake, ends the connection.
  void refuse_frame(const request_entry& entry, const protocol::frame& frame, const error& why);
  /// Ends a request early. False: no such request.
  bool cancel(request_id id, errc why);
  void refuse_ended(); ///< requests that ended while they waited for room
  /// Sets how long the request may wait, in milliseconds; 0: the default.
  void set_deadline(const request_entry& entry, uint32_t deadline_ms);
  /// Ends `part` before the request ends, so that the request can answer with what it has then (`request_table::set_part`).
  /// False: the request has ended already. Null: the request has no part any more.
  bool set_part(const request_entry& entry, const context_ptr& part);
  /// The request takes memory for so many objects until it is answered: it uses up credit like bytes of its frame. Once per
  /// request. True: it has the memory; otherwise it waits for room.
  bool charge(const request_entry& entry, size_t objects);
  /// Goes on when the trust group's memory has room for the objects that were charged.
  void wait_for_room(const request_entry& entry, size_t objects, const continuation& waiting);
  /// Counts from now on about so many objects, for which the request will be charged.
  void expect_objects(const request_entry& entry, size_t objects);
  /// They have been charged, as far as it takes them.
  void objects_are_known(const request_entry& entry);
  /// Keeps the body of the request that is being served, for the lifetime of the pointer. While it is being served.
  keep_alive hold_body() { return served_body_ ? served_body_ : channel_->hold(); }
  const request_table& requests() const { return requests_; }

  // ---- reading ----

  /// The gate knows what another request waits for before it begins, such as how many chunks one has; then `pump` goes on.
  reading_gate& gate() { return gate_; }
  void pump();
  /// The handshake is done. `observes`: it may only look and administer.
  void greeted(bool observes);
  connection_phase phase() const { return life_.now(); }
  /// Sends an error outside any request, then closes.
  void end(const error& why);
  void arm_timer(clock::time_point at);

 private:
  using next = connection_life::next;

  void take(next step);
  void finish();
  void show_phase() { client_.record()->state = to_string(life_.now()); }
  void serve(protocol::frame& frame, std::optional<clock::time_point> arrived = {}); // now, unless it waited
  bool serve_waiting();
  request_entry begin(const protocol::frame& frame, clock::time_point arrived);
  bool cancel_waiting(request_id id, errc why);
  void refuse_unbegun(const protocol::frame& frame);
  void refuse_unread(const request_entry& entry, const protocol::frame& frame, metrics::refusal as,
                     const error& why);
  void refuse_unserved(const request_entry& entry, const protocol::frame& frame, const error& why);
  void violation(const protocol::frame& frame, const error& why);
  void discard(protocol::frame frame);
  void account_memory(uint64_t unfinished_frame);
  void expect_rest_of_frame(uint64_t bytes);
  void expect_reading(clock::time_point now);
  void answer_sent(request_id id);
  bool charge_objects(request_id id, uint64_t bytes);
  void admit_waiting();
  void give_back_room(uint64_t bytes);
  void end_by(clock::duration after);

  owner& owner_;
  connected_client& client_;
  const connection_environment& environment_;
  runtime::io_port& port_;
  caf::weak_actor_ptr actor_;
  std::unique_ptr<frame_channel> channel_;
  connection_life life_;
  request_table requests_;
  waiting_requests waiting_;
  keep_alive served_body_; ///< of one that had to wait; null: the channel has it
  reading_gate gate_;
  client_deadlines deadlines_;
  /// A client whose requests take so much at a time has a flood: when it ends, the memory goes back to the kernel.
  static constexpr uint64_t flood_bytes = 1 << 20;
  bool flooded_ = false;
  /// Requests that wait for room for their objects. The first one waits in the queue of the trust group.
  struct waiting_for_memory {
    request_entry entry;
    uint64_t bytes = 0; ///< of objects
    continuation next;
  };
  std::deque<waiting_for_memory> waiting_for_memory_;
  clock::time_point timer_at_ = clock::time_point::max(); ///< when the armed timer fires
  runtime::operation_id timer_{};
  bool pumping_ = false;
  bool in_turn_ = false;  ///< what is answered waits for its end
  bool looks_up_ = false; ///< in this turn a lookup may be made at once
};

} // namespace terrace::actors
