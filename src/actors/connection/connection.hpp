// CONNECTION: one client's channel, its requests in flight (request_table.hpp), and its resources: regions,
// leases, reservations (client_holdings.hpp).
//
// A verb (verbs/*.cpp) is a coroutine over a request (request.hpp); the actor (connection_actor.cpp) passes it
// completions. It belongs to one actor and is part of its state: when the actor ends, all resources of the
// client are released.
#pragma once

#include "actors/connection/client_bell.hpp"
#include "actors/connection/client_record.hpp"
#include "actors/connection/continuation.hpp"
#include "actors/connection/frame_channel.hpp"
#include "actors/connection/peer.hpp"
#include "actors/transfer/transfer_arguments.hpp"
#include "base/idle_pool.hpp"
#include "connection/arriving_request.hpp"
#include "connection/client_deadlines.hpp"
#include "connection/client_environment.hpp"
#include "connection/client_holdings.hpp"
#include "connection/client_log.hpp"
#include "connection/connection_life.hpp"
#include "connection/counter_waits.hpp"
#include "connection/reading_gate.hpp"
#include "connection/request_table.hpp"
#include "connection/teardown_line.hpp"
#include "connection/waiting_requests.hpp"
#include "protocol/verify.hpp"
#include "runtime/home.hpp"
#include "runtime/io_messages.hpp"
#include "runtime/short_turns.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <cassert>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <utility>

namespace terrace::actors {

using clock = std::chrono::steady_clock;

/// What all connections of a trust group share.
struct connection_environment : client_environment {
  group_ptr group;
  std::shared_ptr<connected_clients> clients;
  devices_actor devices; ///< null: none
};

/// What an object of a request costs in credit: its key, parent, size, place and location.
constexpr uint64_t object_credit = 160;

/// Actors that have answered and can be used again; they end with their connection. Starting one takes a few
/// microseconds, and so does its end, which wakes CAF's clock thread.
using actor_pool = idle_pool<caf::actor>;

class connection {
 public:
  struct shell {
    const char* name = "connection";
    std::unique_ptr<connection> work;
  };
  using interface = connection_actor::extend<caf::reacts_to<begin_notice>, caf::reacts_to<runtime::io_done>>;
  using self_pointer = caf::stateful_actor<shell, runtime::short_turns<runtime::homed<interface::base>>>*;

  connection(self_pointer self, unique_fd socket, peer who, client_ptr record,
             std::shared_ptr<const connection_environment> environment);
  ~connection();

  // ---- called by the actor ----

  /// Handles a message. What it answers is sent at its end, not before: whatever it does meanwhile, such as sending other
  /// messages, comes before what anybody does with the answers.
  template <class F>
  void in_turn(F&& work) {
    assert(!in_turn_);
    in_turn_ = looks_up_ = true;
    work();
    end_turn();
  }

  void on_begin();
  void on_io_done(const runtime::io_done& done);
  void on_drain(); ///< no new requests; close when those in flight are answered
  void on_leave(); ///< for another, because it is silent or only observes
  /// A process confirms that it no longer accesses anything of this connection. Counts if it is the client.
  void on_confirmed(pid_t pid);
  /// An operator has revoked the lease, which the group has marked.
  revoke_answer on_revoke(const lease_id& id);
  /// What the client has, counted again, and its leases compared with those that the group knows.
  caf::result<check_client_answer> on_check();

  // ---- for verbs ----

  using request = request_entry;

  /// `make` builds the answer's table and returns its offset. Answers to requests that have ended are
  /// dropped.
  template <class F>
  void reply(const request& what, F&& make, std::vector<unique_fd> descriptors = {}) {
    auto frame = channel_->builder();
    auto& body = frame->start();
    frame->finish(protocol::answer_to(what.kind), what.id, make(body),
                  static_cast<uint16_t>(descriptors.size()));
    answer(what, errc::ok, std::move(frame), std::move(descriptors));
  }
  /// The same for a frame that was finished in steps.
  void reply(const request& what, std::unique_ptr<protocol::frame_builder> finished) {
    answer(what, errc::ok, std::move(finished), {});
  }
  void refuse(const request& what, const error& why);
  /// True if there is no error. Otherwise refuses the request with it.
  bool ok(const request& what, const error& failure) {
    if (failure.code != errc::ok)
      refuse(what, failure);
    return failure.code == errc::ok;
  }
  template <class T>
  bool ok(const request& what, const result<T>& made) {
    return made || ok(what, made.error());
  }
  /// For a request whose contents are wrong: answers it; ends the connection if it is the handshake.
  void refuse_frame(const request& what, const protocol::frame& frame, const error& why);

  /// The request takes memory for so many objects until it is answered: it uses up credit like bytes of its frame. Once per
  /// request. True: it has the memory, because they are few; otherwise it waits for room.
  bool charge(const request& what, size_t objects);
  /// Goes on when the trust group's memory has room for the objects, at once if it does now.
  void wait_for_room(const request& what, size_t objects, const continuation& waiting);
  /// It will be charged for about so many, which are counted from now on.
  void expect_objects(const request& what, size_t objects) {
    requests_.expect(what.id, objects * object_credit);
    account_memory(gate_.unfinished_bytes());
  }
  /// They have been charged, as far as it takes them.
  void objects_are_known(const request& what) {
    requests_.settle(what.id);
    account_memory(gate_.unfinished_bytes());
    pump(); // there may be credit again
  }

  /// Sets how long the request may wait; 0: the default.
  void set_deadline(const request& what, uint32_t deadline_ms);

  /// The deadline, inference, priority and trace of the request: its own, or else those of the space that it names.
  template <class Request>
  void take_terms(const request& what, const Request& asked) {
    request_defaults defaults;
    if constexpr (requires { asked.space(); })
      defaults = defaults_of_space(asked.space());
    set_deadline(what, asked.deadline_ms() != 0 ? asked.deadline_ms() : defaults.deadline_ms);
    take_options(what, asked.options(), defaults);
  }
  /// Notifies the policy of the inference's access to these objects, root first, unless the request belongs
  /// to no inference.
  void use_for_inference(const request& what, const wire::Options* options, object_source objects);
  /// The same for shadow policies, for any access.
  void tell_shadows(const request& what, const wire::Options* options, const space_ptr& in,
                    std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank = {});

  /// The verb of this request has ended.
  void served(std::list<client_request>::iterator at);

  /// Ends a request early. False: no such request.
  bool cancel(request_id id, errc why);

  client_space_ptr find_space(const request& what, uint32_t id) { ///< null: none, and the request was refused
    auto found = holdings_.opened(id);
    return ok(what, found) ? *found : nullptr;
  }
  client_region_ptr find_region(const request& what, uint32_t id) {
    auto found = holdings_.registered(id);
    return ok(what, found) ? *found : nullptr;
  }

  /// At which it computes the space's KV, in tokens per second; 0: what it computes faster than it is read is not left to it.
  uint32_t prefill_speed(const wire::Options* options, const client_space& in) const;
  /// True if the request is to find nothing, which is counted.
  bool loads_nothing(const wire::Options* options, const client_space& in);
  /// True if the request is to store nothing, which is counted.
  bool stores_nothing(const wire::Options* options, const client_space& in);
  /// So many chunks are left to it; 0: none.
  void count_recomputed(const space_spec& spec, uint32_t chunks);

  const region_budget_ptr& regions() const { return regions_; } ///< of this connection
  bool may_lease(const request& what) {                         ///< refuses the request at the limit
    return ok(what, holdings_.may_lease());
  }
  void add_lease(lease_ptr taken);
  bool release_lease(const lease_id& id);
  /// True if the lease is on so many objects that it ends later than `release_lease`.
  bool lease_ends_elsewhere(const lease_id& id) const { return holdings_.ends_elsewhere(id); }
  /// For another client, from any thread: ends its own lease, unless this client may be reading it in place.
  std::function<void()> lease_ender(const lease_id& id);
  /// A step of a read, after which the client may read these locations. True: there is another step. Nullopt: at the
  /// limit, or the lease has ended, and the request was refused.
  std::optional<bool> read_some(const request& what, lease_reading& work);
  /// The client no longer reads any location of the lease that it was given. True: they are released later.
  bool has_read(const lease_id& id);
  bool holds(const lease_id& id) const { return holdings_.holds(id); }
  result<staging*> staging_memory(); ///< created on first use

  client_holdings& holdings() { return holdings_; }
  /// After a change of regions, leases or reservations: status shows them.
  void show() { holdings_.show(*record_); }

  // ---- messages to other actors ----

  /// Sends `message` to `to`, and calls `then` with the answer on this connection; `lost` if `to` has ended.
  template <class Actor, class Message, class F, class G>
  void ask(const Actor& to, Message message, F then, G lost) {
    assert(asked_ < asked_max());
    ++asked_;
    self_->request(to, caf::infinite, std::move(message))
        .then(
            [this, then = std::move(then)](answer_of<F> answer) mutable {
              --asked_;
              in_turn([&] { then(answer); });
            },
            [this, lost = std::move(lost)](const caf::error&) mutable {
              --asked_;
              in_turn(lost);
            });
  }
  template <class Actor, class Message>
  void send(const Actor& to, Message message) {
    self_->send(to, std::move(message));
  }
  /// Sends on an edge with a credit. Without credit (edge_credit.hpp) no further request is read until `to` has read it.
  template <class Actor, class Message>
  void send_with_credit(edge_credit& credit, const Actor& to, Message message, uint64_t units) {
    if (credit.offer(units)) {
      send(to, std::move(message));
      return;
    }
    gate_.sent_without_credit();
    auto read = [this] {
      gate_.read_without_credit();
      in_turn([this] { pump(); });
    };
    self_->request(to, caf::infinite, std::move(message)).then(read, [read](const caf::error&) { read(); });
  }
  template <class Message>
  void tell_policy(Message message, uint64_t objects) {
    send_with_credit(*group().uses, group().policy, std::move(message), objects);
    assert(gate_.without_credit() <= without_credit_max());
  }
  template <class Message>
  void tell_group(Message message) {
    send_with_credit(*group().lease_notices, group().group, std::move(message), 1);
    assert(gate_.without_credit() <= without_credit_max());
  }
  /// Continues with `work` after other messages have been handled.
  void resume(std::function<void()> work);
  /// Until it is known how many chunks a request has, no further request begins; then `pump` goes on.
  void cost_unknown() { gate_.cost_unknown(); }
  void cost_known() { gate_.cost_known(); }
  void pump();
  /// Calls `work` once the request ends early, unless its owner has dropped it.
  void when_ended(const request& what, const teardown_line::work& work) {
    after_teardown_.add(what.context, work);
  }
  // ---- counters of the client (connection_bell.cpp) ----

  /// The descriptor of the client's bell, for the client.
  result<unique_fd> bell();
  /// Goes on when the client rings and the counter has the value. Refuses the request if it ends before, or the region of the
  /// counter or the memory does, and without a bell.
  void wait_for_counter(const request& what, const client_counter& counter, uint32_t value,
                        device_memory_ptr memory, const continuation& waiting);
  /// The client has unregistered this region.
  void end_waits_in(const client_region& counters);
  error end_of(const client_counter& counter, const device_memory_ptr& memory) const;
  /// From now on waits for counters end with this memory. Once for each.
  void watch_device_memory(const device_memory_ptr& memory);

  /// Called on any thread, runs `work` on the connection's, unless it has ended.
  std::function<void()> on_any_thread(std::function<void()> work);
  /// Continues with `work` when everything that is being unmapped by now has been, or the request ends.
  void resume_after_teardown(const request& what, std::function<void()> work);
  /// The same for leases on many objects that have ended by now.
  void resume_after_lease_ends(const request& what, std::function<void()> work) {
    resume_after(group().lease_ends, what, std::move(work));
  }

  caf::actor_system& system() { return self_->system(); }
  runtime::home home() { return self_->where(); }

  /// The handshake is done. Errors: `busy`, if there are as many clients as allowed.
  result<void> greeted(std::string client_name, bool observes);

  /// Sends an error outside any request, then closes.
  void end(const error& why);

  const connection_environment& environment() const { return *environment_; }
  const group_parts& group() const { return *environment_->group; }
  const group_ptr& group_handle() const { return environment_->group; }
  const client_ptr& record() const { return record_; }
  frame_channel& channel() { return *channel_; }
  /// Keeps the body of the request that is being served, for the lifetime of the pointer. While it is being served.
  keep_alive hold_body() { return served_body_ ? served_body_ : channel_->hold(); }
  const peer& who() const { return peer_; }
  /// True if it may change what serves all clients of the trust group. Otherwise refuses the request. `why`: what the
  /// request would change.
  bool may_govern(const request& what, const char* why);
  /// True if its trust group's memory may be mapped. Otherwise refuses the request. `instead`: what the client can use.
  bool may_map(const request& what, const char* instead);
  /// True once in a turn: a client that sends many requests together does not make a long one of it.
  bool may_look_up_at_once() { return in_turn_ && std::exchange(looks_up_, false); }
  actor_pool& idle_lookups() { return idle_lookups_; }
  actor_pool& idle_loads() { return idle_loads_; }
  actor_pool& idle_stores() { return idle_stores_; }
  const account_ptr& leased() const { return leased_; } ///< what its leases and readings hold of host memory

 private:
  using next = connection_life::next;
  request_defaults defaults_of_space(uint32_t id) const; ///< those of any, if it is not open
  static void take_options(const request& what, const wire::Options* options, const request_defaults& space);
  void take(next what);
  template <class F, class Answer>
  static Answer argument_of(void (F::*)(Answer) const);
  template <class F, class Answer>
  static Answer argument_of(void (F::*)(Answer));
  template <class F>
  using answer_of = decltype(argument_of(&F::operator())); ///< the type of a handler's argument
  void refuse_unbegun(const protocol::frame& frame);
  void end_turn();
  void on_received(int32_t bytes);
  void on_sent(int32_t bytes);
  void on_peer_exit();
  void on_hang_up(int32_t events);
  void on_timer();
  void on_bell(int32_t result);
  void refuse_ended_waits();
  void account_memory(uint64_t unfinished_frame);
  void expect_rest_of_frame(uint64_t bytes);
  /// A request in flight sends at most one message to the policy and one to the group, and ends one lease; a lease that
  /// another client ends, two more.
  uint32_t without_credit_max() const { return 3 * requests_max() + 2 * environment_->limits.leases_max; }
  uint32_t requests_max() const { // and one that is refused, see `cancel_waiting`
    return environment_->limits.credit_requests + protocol::giving_back_requests_max;
  }
  /// A request awaits at most one answer of each tier, of the group and of the policy, or one of a device; a check of
  /// the group's, one of it; and a region, one of its device.
  size_t asked_max() const {
    return requests_max() * (group().tiers().size() + 2) + 1 + environment_->limits.regions_max;
  }
  void serve(protocol::frame& frame, std::optional<clock::time_point> arrived = {}); // now, unless it waited
  void start(const request& what, protocol::frame& frame);
  bool serve_waiting();
  void discard(protocol::frame frame);
  request begin(const protocol::frame& frame, clock::time_point arrived);
  bool cancel_waiting(request_id id, errc why);
  void refuse_unread(const request& what, const protocol::frame& frame, metrics::refusal as,
                     const error& why);
  void refuse_unserved(const request& what, const protocol::frame& frame, const error& why);
  void violation(const protocol::frame& frame, const error& why);
  void answer(const request& what, errc outcome, std::unique_ptr<protocol::frame_builder> frame,
              std::vector<unique_fd> descriptors);
  void expect_reading(clock::time_point now);
  void answer_sent(request_id id);
  void sweep();
  void resume_after(const teardown_ptr& line, const request& what, std::function<void()> work);
  std::function<void()> marked_work(const request& what, std::function<void()> work);
  void resume_ended();
  void take_room();
  void refuse_roomless();
  void give_back_room(uint64_t bytes);
  void close();
  void finish();
  void end_by(clock::duration after);
  void arm_timer(clock::time_point at);
  void lease_ended(const client_holdings::ended_lease& ended);
  void serve_after_lease_ends();
  void count_quarantine();
  void show_phase() { record_->state = to_string(life_.now()); }

  void quit();

  work_mark ending_; ///< first, to end last: until then a check does not miss what the connection had
  self_pointer self_;
  std::shared_ptr<const connection_environment> environment_;
  peer peer_;
  client_ptr record_;
  client_log log_;
  std::unique_ptr<frame_channel> channel_;
  connection_life life_;
  request_table requests_;
  waiting_requests waiting_;
  keep_alive served_body_; ///< of one that had to wait; null: the channel has it
  reading_gate gate_;
  client_deadlines deadlines_;
  account_ptr leased_;
  client_holdings holdings_;
  region_budget_ptr regions_;
  actor_pool idle_lookups_, idle_loads_, idle_stores_;
  std::list<client_request> serving_,
      idle_requests_; ///< those whose verbs are in progress, and some to use again
  teardown_line after_teardown_;
  /// Its requests took so much at a time: what is freed after the flood, answers that were still being sent, goes back when it ends.
  static constexpr uint64_t flood_bytes = 1 << 20;
  bool flooded_ = false;
  client_bell bell_;
  counter_waits waits_;
  std::vector<std::weak_ptr<const device_memory>>
      lost_memory_; ///< still registered, of a process that has ended
  /// Requests that wait for room for their objects. The first one waits in the line of the trust group.
  struct roomless {
    request what;
    uint64_t bytes = 0; ///< of objects
    continuation next;
  };
  std::deque<roomless> roomless_;
  clock::time_point timer_at_ = clock::time_point::max(); ///< when the armed timer fires
  runtime::operation_id timer_{};
  size_t asked_ = 0;    ///< answers of other actors that are awaited
  size_t resuming_ = 0; ///< parts of requests in the mailbox
  bool pumping_ = false;
  bool in_turn_ = false;     ///< what is answered waits for its end
  bool looks_up_ = false;    ///< in this turn a lookup may be made at once
  bool owner_ended_ = false; ///< the group was notified
  bool quits_ = false;       ///< the actor ends
  uint64_t quarantined_bytes_ = 0;
};

} // namespace terrace::actors
