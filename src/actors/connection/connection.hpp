// CONNECTION: one client's requests, from the frame to the answer, and what they ask of other actors.
//
// A connection is made of what the client has (connected_client.hpp), its frames and their credit (client_inbox.hpp), and the requests
// whose verbs are in progress (request.hpp). The actor (connection.cpp) passes it messages. It belongs to one actor and
// is part of its state: when the actor ends, all resources of the client are released.
#pragma once

#include "actors/connection/client_inbox.hpp"
#include "actors/connection/connected_client.hpp"
#include "actors/connection/counter_wakeup.hpp"
#include "connection/connection_life.hpp"
#include "connection/counter_waits.hpp"
#include "runtime/home.hpp"
#include "runtime/io_port.hpp"
#include "runtime/turn_times.hpp"
#include "runtime/turns.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <cassert>
#include <functional>
#include <list>
#include <utility>

namespace terrace::actors {

class connection final : private client_inbox::owner {
 public:
  struct shell {
    const char* name = "connection";
    std::unique_ptr<connection> work;
  };
  using interface = connection_actor::extend<caf::reacts_to<begin_notice>, caf::reacts_to<runtime::io_done>>;
  using self_pointer = caf::stateful_actor<
      shell, runtime::turns<runtime::short_turns<runtime::homed<interface::base, runtime::woken::next>>>>*;

  connection(self_pointer self, unique_fd socket, peer who, client_ptr record,
             std::shared_ptr<const connection_environment> environment);
  ~connection();

  connected_client& client() { return client_; }
  client_inbox& inbox() { return inbox_; }

  // ---- called by the actor ----

  void on_begin();
  void on_io_done(const runtime::io_done& done);
  /// An operator has revoked the lease, which the group has marked.
  revoke_answer on_revoke(const lease_id& id);
  /// What the client has, counted again, and its leases compared with those that the group knows.
  caf::result<check_client_answer> on_check();

  // ---- leases ----

  void add_lease(lease_ptr taken);
  bool release_lease(const lease_id& id);
  /// For another client, from any thread: ends its own lease, unless this client may be reading it in place.
  std::function<void()> lease_ender(const lease_id& id);
  /// The client no longer reads any location of the lease that it was given. True: they are released later.
  bool has_read(const lease_id& id);

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
              then(answer);
            },
            [this, lost = std::move(lost)](const caf::error&) mutable {
              --asked_;
              lost();
            });
  }
  template <class Actor, class Message>
  void send(const Actor& to, Message message) {
    self_->send(to, std::move(message));
  }
  /// Sends on an edge with a credit. Without credit (credit_gate.hpp) no further request is read until `to` has read it.
  template <class Actor, class Message>
  void send_with_credit(credit_gate& credit, const Actor& to, Message message, uint64_t units) {
    if (credit.offer(units)) {
      send(to, std::move(message));
      return;
    }
    inbox_.gate().sent_without_credit();
    auto read = [this] {
      inbox_.gate().read_without_credit();
      inbox_.pump();
    };
    self_->request(to, caf::infinite, std::move(message)).then(read, [read](const caf::error&) { read(); });
  }
  template <class Message>
  void tell_policy(Message message, uint64_t objects) {
    send_with_credit(*client_.group().uses, client_.group().policy, std::move(message), objects);
    assert(inbox_.gate().without_credit() <= without_credit_max());
  }
  template <class Message>
  void tell_group(Message message) {
    send_with_credit(*client_.group().lease_notices, client_.group().group, std::move(message), 1);
    assert(inbox_.gate().without_credit() <= without_credit_max());
  }
  /// Continues with `work` after other messages have been handled.
  void resume(std::function<void()> work);
  /// Calls `work` once this request, or part of one, ends early, unless its owner has dropped it.
  void when_ended(const context_ptr& of, const teardown_queue::work& work) { after_teardown_.add(of, work); }
  /// Called on any thread, runs `work` on the connection's, unless it has ended.
  std::function<void()> on_any_thread(std::function<void()> work) override;
  /// Continues with `work` when everything that is being unmapped by now has been, or the request ends.
  void resume_after_teardown(const request_entry& entry, std::function<void()> work);
  /// The same for leases on many objects that have ended by now.
  void resume_after_lease_ends(const request_entry& entry, std::function<void()> work) {
    resume_after(client_.group().lease_ends, entry, std::move(work));
  }

  // ---- counters of the client (counter_wakeup.cpp) ----

  /// The descriptor of the client's bell, for the client.
  result<unique_fd> bell();
  /// Goes on when the client rings and the counter has the value. Refuses the request if it ends before, or the region of the
  /// counter or the memory does, and without a bell.
  void wait_for_counter(const request_entry& entry, const client_counter& counter, uint32_t value,
                        device_memory_ptr memory, const continuation& waiting);
  /// The client has unregistered this region.
  void end_waits_in(const client_region& counters);
  /// From now on waits for counters end with this memory. Once for each.
  void watch_device_memory(const device_memory_ptr& memory);

  // ---- for verbs ----

  /// The verb of this request has ended.
  void served(std::list<client_request>::iterator at);
  /// The handshake is done. Errors: `busy`, if there are as many clients as allowed.
  result<void> greeted(std::string client_name, bool observes);
  caf::actor_system& system() { return self_->system(); }
  runtime::home home() { return self_->where(); }
  /// Actors that have answered this connection and wait for the next request.
  struct idle_actors {
    actor_pool lookups, loads, stores;
  };
  idle_actors& idle() { return idle_; }

 private:
  template <class F, class Answer>
  static Answer argument_of(void (F::*)(Answer) const);
  template <class F, class Answer>
  static Answer argument_of(void (F::*)(Answer));
  template <class F>
  using answer_of = decltype(argument_of(&F::operator())); ///< the type of a handler's argument
  const connection_limits& limits() const { return client_.environment().limits; }
  /// A request in flight sends at most one message to the policy and one to the group, and ends one lease; a lease that
  /// another client ends, two more.
  uint32_t without_credit_max() const { return 3 * requests_max() + 2 * limits().leases_max; }
  uint32_t requests_max() const { // and one that is refused, see `client_inbox::cancel_waiting`
    return limits().credit_requests + protocol::giving_back_requests_max;
  }
  /// A request awaits at most one answer of each tier, of the group and of the policy, or one of a device; a check of
  /// the group's, one of it; and a region, one of its device.
  size_t asked_max() const {
    return requests_max() * (client_.group().tiers().size() + 2) + 1 + limits().regions_max;
  }
  void serve(const request_entry& entry, protocol::frame& frame) override;
  void refused(const request_entry& entry, const protocol::frame& frame) override;
  void requests_ended() override;
  void close() override;
  void quit() override;
  void start(const request_entry& entry, protocol::frame& frame);
  void on_peer_exit();
  void on_bell(int32_t result);
  void refuse_ended_waits();
  error end_of(const client_counter& counter, const device_memory_ptr& memory) const;
  void sweep();
  void resume_after(const teardown_ptr& line, const request_entry& what, std::function<void()> work);
  std::function<void()> marked_work(const request_entry& what, std::function<void()> work);
  void lease_ended(const client_holdings::ended_lease& ended, bool later);
  void serve_after_lease_ends();
  void count_quarantine() { client_.count_quarantine(inbox_.phase() == connection_phase::quarantined); }

  work_mark ending_; ///< first, to end last: until then a check does not miss what the connection had
  self_pointer self_;
  connected_client client_;
  client_inbox inbox_;
  idle_actors idle_;
  std::list<client_request> serving_; ///< those whose verbs are in progress
  std::list<client_request> idle_requests_;
  teardown_queue after_teardown_;
  counter_wakeup bell_;
  counter_waits waits_;
  std::vector<std::weak_ptr<const device_memory>>
      lost_memory_;          ///< still registered, of a process that has ended
  size_t asked_ = 0;         ///< answers of other actors that are awaited
  size_t resuming_ = 0;      ///< parts of requests in the mailbox
  bool owner_ended_ = false; ///< the group was notified
  bool quits_ = false;       ///< the actor ends
};

// The actor for `connection`: runs on its home worker and turns completions and messages into calls.

/// Spawns the connection at that home; it is in the directory before this returns.
connection_actor spawn_connection(caf::actor_system& system, const runtime::home& home, unique_fd socket,
                                  peer who, connection_id id,
                                  std::shared_ptr<const connection_environment> environment);

} // namespace terrace::actors
