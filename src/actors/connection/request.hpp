// A request in progress: what it is, how it is answered, and what its verb may await.
//
//   task<> pin(client_request& request, const wire::Pin& asked, protocol::descriptor_list&) {
//     auto space = co_await request.space_of(asked);
//     auto prefix = co_await request.chunks_of(*space, asked);
//     co_await request.room(objects);
//     ...
//     request.reply(...);
//   }
//
// The connection owns it and keeps the body of its frame, so that `asked` is valid to the verb's end. Whatever a verb awaits
// is there when it goes on: if the request has ended meanwhile, if the actor that was asked has ended, or if there is no
// memory, then the request is refused and the coroutine destroyed, with everything that it holds. Belongs to the actor of its
// connection.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "connection/request_values.hpp"
#include "group/session_turn.hpp"
#include "index/prefix_resolver.hpp"
#include "protocol/bounds.hpp"
#include "runtime/task.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/objects/scope_objects.hpp"
#include "transfer/scatter_gather.hpp"

#include <list>
#include <optional>
#include <string>
#include <utility>

namespace terrace::actors {

/// Why a request is refused that asked the group in vain.
constexpr const char* group_ended = "the trust group's actor has ended";

struct verb;

/// Null: there is none.
inline const error* failure_in(const error& made) { return made.code == errc::ok ? nullptr : &made; }
template <class T>
const error* failure_in(const result<T>& made) {
  return made ? nullptr : &made.error();
}

class client_request final : public request_entry, private task_owner {
  // A verb awaits these; see request_awaits.hpp.
  template <class T>
  struct checking;
  template <class T>
  struct finding;
  struct granting;
  template <class Answer, class Whom, class Message>
  struct asking;
  template <class Answer, class Whom, class Message>
  struct trying;
  template <class Answer, class Message>
  struct asking_tiers;
  template <class Message, class Answer>
  struct asking_group;
  struct waiting_for_turn;
  struct waiting_for_room;
  struct waiting_for_teardown;
  struct waiting_for_change;
  struct waiting_for_counter;

 public:
  explicit client_request(connection& of) : actor(of), client(of.client()) {}

  connection& actor;
  connected_client& client;

  // ---- the answer, once ----

  /// `make` builds the answer's table and returns its offset.
  template <class F>
  void reply(F&& make, std::vector<unique_fd> descriptors = {}) {
    auto frame = inbox().builder();
    auto& body = frame->start();
    frame->finish(protocol::answer_to(kind), id, make(body), static_cast<uint16_t>(descriptors.size()));
    inbox().answer(*this, errc::ok, std::move(frame), std::move(descriptors));
  }
  /// A frame that was finished in steps.
  void reply(std::unique_ptr<protocol::frame_builder> finished) {
    inbox().answer(*this, errc::ok, std::move(finished), {});
  }
  void refuse(const error& why) { inbox().refuse(*this, why); }
  /// True if `made`, a result or an error, is none. Otherwise refuses the request with it.
  template <class T>
  bool ok(const T& made) {
    const error* failure = failure_in(made);
    if (failure != nullptr)
      refuse(*failure);
    return failure == nullptr;
  }

  // ---- its terms ----

  /// The deadline, inference, priority and trace of the request: its own, or else those of the space that it names. Set before
  /// the verb of a table with options begins.
  template <class Request>
  void set_terms(const Request& asked) {
    request_defaults defaults;
    if constexpr (requires { asked.space(); })
      defaults = client.defaults_of_space(asked.space());
    inbox().set_deadline(*this, asked.deadline_ms() != 0 ? asked.deadline_ms() : defaults.deadline_ms);
    set_options(asked.options(), defaults);
  }

  // ---- awaits ----

  /// Goes on if there is no error, otherwise refuses the request with it and ends.
  template <class T>
  auto valid(const T& made) {
    return checking<T>{*this, made};
  }

  /// The space that the request names, which the client must have open.
  template <class Request>
  auto space_of(const Request& asked) {
    return finding<client_space_ptr>{*this, client.holdings().spaces().opened(asked.space())};
  }
  /// The region that the table names, which the client must have registered.
  template <class Table>
  auto region_of(const Table& asked) {
    auto found = client.holdings().regions().registered(asked.region());
    return finding<typename decltype(found)::value_type>{*this, std::move(found)};
  }
  /// Goes on if the client may change what serves all clients of its trust group. `why`: what the request would change.
  granting may_govern(const char* why);
  /// Goes on if the client may map memory of its trust group. `instead`: what it can use.
  granting may_map(const char* instead);

  /// The answer of another actor. `lost`: why the request is refused if that actor has ended, a literal.
  template <class Answer, class Whom, class Message>
  auto ask(const Whom& whom, Message message, const char* lost) {
    return asking<Answer, Whom, Message>{*this, whom, std::move(message), lost};
  }
  /// The same, and a verb for which the end of that actor is an answer: `internal`, with this text. `alone`: no further
  /// request begins meanwhile.
  template <class Answer, class Whom, class Message>
  auto try_ask(const Whom& whom, Message message, const char* lost, bool alone = false) {
    return trying<Answer, Whom, Message>{{*this, whom, std::move(message), lost}, alone};
  }

  /// The next turn of the connection: others have theirs first. Refuses the request if it ends "while" `doing`.
  waiting_for_turn turn(const char* doing);

  /// Memory for so many objects until the request is answered: they use up credit like bytes of its frame. At once if they
  /// are few, or if the trust group's memory has room for them. Once per request.
  waiting_for_room room(size_t objects);

  /// A lease of this client, or another's of its trust group.
  asking_group<use_lease_request, use_lease_answer> lease(const lease_id& wanted);
  /// Nobody removes this partial chunk from the tiers from now on until it is saved or this connection ends.
  asking_group<refer_tail_request, refer_tail_answer> tail(const space_ptr& space, const digest& key);

  /// The answer of each tier, in their order; `internal` of one that has ended.
  template <class Answer, class Message>
  auto ask_tiers() {
    return asking_tiers<Answer, Message>{*this};
  }
  /// Everything that is being unmapped by now has been. Refuses the request if it ends "before" `what`.
  waiting_for_teardown unmapped(const char* text);
  /// Leases on many objects that have ended by now are gone. `what`: as above; null: it goes on in any case.
  waiting_for_teardown leases_ended(const char* text = nullptr);
  /// There is a change behind `number`, or the request has ended.
  waiting_for_change changed(change_count& changes, uint64_t number);
  /// The counter of the client has the value: at once, or when the client rings.
  waiting_for_counter counted(const client_counter& counter, uint32_t value, const device_memory_ptr& memory);

  /// The chunks of a prefix, hashed in slices between other messages if there are many tokens. A session stays as it is; a
  /// partial chunk is refused without one.
  /// `leading`: of a prefix beyond the bounds of a request the leading part, for a question.
  task<chunk_prefix> chunks(const client_space& opened, const wire::Prefix& prefix, bool leading = false);
  template <class Request>
  auto chunks_of(const client_space& opened, const Request& asked) {
    return chunks(opened, *asked.prefix());
  }
  /// Goes on hashing a prompt of about so many objects, in turns that others who were just woken precede (runtime/job_queue.hpp).
  /// The resolver refers to memory that the caller keeps.
  task<chunk_prefix> hash(prefix_resolver& resolver, size_t objects);

  /// Looks these objects up. Without `hold`, a store that other machines write to is asked for what no tier of this
  /// machine has. Nothing of such a store can be held, because others may remove it.
  task<lookup_answer> look_up(lookup_request question);

  client_inbox& inbox() { return actor.inbox(); }

  /// The body of its frame, for as long as the pointer.
  keep_alive body() { return body_ ? body_ : inbox().hold_body(); }
  /// The verb reads its table no longer: the frame's body is given back. For what may wait for long.
  void release_body() {
    body_ = nullptr;
    keeps_body_ = false;
  }

  // ---- for its connection ----

  /// Begins the verb.
  void serve(const verb& work, protocol::frame& frame, std::list<client_request>::iterator at);
  /// Ends the coroutine, without an answer.
  void stop() { work_.end(); }
  /// Without anything of the request that it was.
  void clear();
  /// Refuses the request, and ends its coroutine.
  void fail(const error& why);

 private:
  /// Searches the indexes of the tiers.
  task<lookup_answer> search_tiers(lookup_request question);
  /// Does the same, and asks each store that other machines write to for what the tiers above it lack.
  task<lookup_answer> search_stores(lookup_request question);
  void set_options(const wire::Options* options, const request_defaults& space);

  void task_ended() noexcept override;
  void task_failed(const std::exception_ptr& why) noexcept override;

  task<> work_;
  keep_alive body_;                        ///< of its frame, while it is suspended
  std::list<client_request>::iterator at_; ///< of itself, in its connection
  bool starting_ = false;
  bool keeps_body_ = true;
  bool expects_ = false; ///< more objects than it has been charged for
};

/// Whether a lookup asks stores that other machines write to: one may be searched and serves; bit n of `tiers`: tier_kind n, 0: all.
bool asks_stores(const trust_group& group, uint32_t tiers);

} // namespace terrace::actors

#include "actors/connection/request_awaits.hpp" // IWYU pragma: export
