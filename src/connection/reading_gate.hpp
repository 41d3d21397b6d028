// Decides when a connection reads on. Requests wait in the socket while their client or its trust group has
// too many.
#pragma once

#include "connection/request_memory.hpp"
#include "connection/request_table.hpp"
#include "connection/waiting_requests.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/frame.hpp"
#include "protocol/kinds.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace terrace {

/// Pure: no actor. Used by the connection's thread only.
class reading_gate {
 public:
  /// `group`: the memory of the trust group's requests. `wake`: called on any thread when that has room
  /// again.
  reading_gate(connection_id who, std::shared_ptr<request_memory> group)
      : who_(who), group_(std::move(group)) {}

  void on_room(std::function<void()> wake) { wake_ = std::move(wake); }
  void on_objects(std::function<void()> wake) { wake_objects_ = std::move(wake); }

  /// Called before the connection looks at waiting and arriving requests.
  void look() { waits_for_room_ = false; }

  /// True if a request may be served now: there is credit, and room in the group's memory.
  bool may_begin(const protocol::frame_header& next, const request_table& requests, bool has_room = false) {
    if (without_credit_ != 0) // the group or the policy must read first
      return false;
    bool gives_back = protocol::gives_back(next.kind);
    if (!requests.may_begin(next.kind, next.length) || (unknown_costs_ != 0 && !gives_back))
      return false;
    // requests of others must not keep a small one out
    bool small = requests.empty() && next.length <= protocol::hello_bytes_max;
    return has_room || small || gives_back || asks_room();
  }

  enum class admission : uint8_t {
    wait,     ///< the frame waits in the socket
    keep,     ///< the frame may be received, and waits if it may not begin then
    has_room, ///< like `keep`, and there is room in the group's memory
  };
  /// Decides whether the frame may be received. An unfinished frame that was let in stays in.
  admission may_receive(const protocol::frame_header& header, const request_table& requests,
                        const waiting_requests& waiting) {
    if (unfinished_bytes_ != header.length)
      let_in_ = judge(header, requests, waiting);
    return let_in_;
  }
  /// True while the connection is queued for the group's memory.
  bool waits_for_room() const { return waits_for_room_; }

  // ---- messages that were sent to other actors without credit, and are not read yet ----

  void sent_without_credit() { ++without_credit_; }
  void read_without_credit() { --without_credit_; }
  uint32_t without_credit() const { return without_credit_; }

  // ---- requests of which it is not known yet how many objects they have ----

  void cost_unknown() { ++unknown_costs_; }
  void cost_known() { --unknown_costs_; }

  // ---- memory ----

  /// Bytes that the requests in flight take, with the frame that has begun to arrive (0: none).
  struct change {
    uint64_t before = 0, now = 0; ///< bytes
    bool flood_over = false;      ///< freed memory should be returned to the kernel
  };
  change account(uint64_t requests_bytes, uint64_t unfinished_bytes) {
    unfinished_bytes_ = unfinished_bytes;
    change made{accounted_, requests_bytes + unfinished_bytes};
    made.flood_over = group_->change(made.before, made.now);
    accounted_ = made.now;
    return made;
  }
  uint64_t unfinished_bytes() const { return unfinished_bytes_; }

  /// Takes memory for the objects of a request, see request_memory.hpp. False: `on_objects` is called when to
  /// ask again.
  bool charge_objects(uint64_t bytes) { return group_->charge_objects(who_, bytes, wake_objects_); }
  void give_back_objects(uint64_t bytes) { group_->give_back_objects(bytes); }
  void takes_no_objects() { group_->leave(who_); }

  /// The connection needs no more room now: the next one in the queue is woken.
  void pass_on() { group_->pass_on(who_); }
  bool group_is_full() const { return group_->full(); }

 private:
  bool asks_room() {
    bool has = group_->has_room(who_, wake_);
    waits_for_room_ = waits_for_room_ || !has;
    return has;
  }
  admission judge(const protocol::frame_header& header, const request_table& requests,
                  const waiting_requests& waiting) {
    if (without_credit_ != 0)
      return admission::wait;
    // a cancel waits for nothing
    bool passes = waiting.empty() || header.kind == protocol::kind::cancel;
    if (passes && may_begin(header, requests))
      return admission::has_room;
    if (!waiting.has_place(header))
      return admission::wait;
    if (waiting.needs_no_room(header))
      return admission::keep;
    return asks_room() ? admission::has_room : admission::wait;
  }

  connection_id who_;
  std::shared_ptr<request_memory> group_;
  std::function<void()> wake_, wake_objects_;
  bool waits_for_room_ = false;
  admission let_in_ = admission::wait; ///< decision on the unfinished frame
  uint64_t unfinished_bytes_ = 0;
  uint64_t accounted_ = 0; ///< bytes accounted in the group's memory
  uint32_t without_credit_ = 0;
  uint32_t unknown_costs_ = 0;
};

} // namespace terrace
