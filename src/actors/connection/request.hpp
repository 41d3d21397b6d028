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
#include "actors/transfer/load_actor.hpp"
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

/// A turn of a session whose tokens are hashed. The session changes when it is saved.
struct hashed_turn {
  session_id session;
  uint64_t generation = 0; ///< of the session when the turn began
  session_state_ptr after;
  bool held = false;         ///< mode of the session
  uint32_t held_chunks = 0;  ///< the first ones, which it held in host memory when the turn began
  uint32_t left_out = 0;     ///< chunks before the prefix
  departure_counts before{}; ///< of host memory; read before `left_out` was known
};

/// The chunks of a prompt, and the turn of the session that has them.
struct turn_prefix {
  chunk_prefix chunks;
  hashed_turn turn;
};

/// What a verb wants of a session's prompt.
struct turn_parts {
  bool tail = false; ///< the tokens after the last whole chunk are a chunk, too
  bool rest =
      false; ///< without the first chunks that are known to be in host memory (index/known_prefix.hpp)
};

/// Objects of a lease, and what it holds of them, by tier.
struct leased_objects {
  batch_ptr objects;
  tier_holds held;
};

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes);

/// The part of a prompt that a transfer is for.
struct prefix_objects {
  std::shared_ptr<const chunk_prefix> prefix;
  transfer_scope scope;
  batch_ptr objects;
};

/// The runs of a load or store, in its frame.
struct run_lists {
  const protocol::run_vector* runs = nullptr;
  const flatbuffers::Vector<uint32_t>* per_object = nullptr; ///< null: one run each
};

struct verb;

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
  template <class Log>
  struct waiting_for_event;
  struct waiting_for_counter;

 public:
  explicit client_request(connection& of) : actor(of), client(of.client()) {}
  client_request(const client_request&) = delete;
  client_request& operator=(const client_request&) = delete;

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
  /// True if there is no error. Otherwise refuses the request with it.
  bool ok(const error& failure) {
    if (failure.code != errc::ok)
      refuse(failure);
    return failure.code == errc::ok;
  }
  template <class T>
  bool ok(const result<T>& made) {
    return made || ok(made.error());
  }

  // ---- what the client has; a request for anything else is refused ----

  client_space_ptr space(uint32_t number) {
    auto found = client.holdings().spaces().opened(number);
    return ok(found) ? *found : nullptr;
  }
  bool may_lease() { return ok(client.holdings().may_lease()); } ///< refused at the limit
  /// A step of a read, after which the client may read these locations. True: there is another step. Nullopt: at the
  /// limit, or the lease has ended.
  std::optional<bool> read_some(lease_reading& work);
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
  /// Notifies the policy of the inference's access to these objects, root first, unless the request belongs to none.
  void use_for_inference(const wire::Options* options, object_source objects);
  /// The same for shadow policies, for any access.
  void tell_shadows(const wire::Options* options, const space_ptr& space_of,
                    std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank = {});

  // ---- awaits ----

  /// Goes on if there is no error, otherwise refuses the request with it and ends.
  template <class T>
  auto valid(const T& made) {
    return checking<T>{*this, made};
  }

  /// The space that the request names, which the client must have open.
  template <class Request>
  auto space_of(const Request& asked) {
    return finding<decltype(space(asked.space()))>{*this, client.holdings().spaces().opened(asked.space())};
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
  /// The session, for a turn that ends at `tokens` (0: no turn).
  task<session_use> session(session_id wanted, uint64_t tokens);
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
  /// The log has something behind `sequence`, or the request has ended.
  template <class Log>
  waiting_for_event<Log> event(Log& log, uint64_t sequence);
  /// The counter of the client has the value: at once, or when the client rings.
  waiting_for_counter counted(const client_counter& counter, uint32_t value, const device_memory_ptr& memory);

  /// The chunks of a prefix, hashed in slices between other messages if there are many tokens. A session stays as it is; a
  /// partial chunk is refused without one.
  task<chunk_prefix> chunks(const client_space& opened, const wire::Prefix& prefix) {
    return resolve(opened, prefix, true);
  }
  /// The same for a question: of a prefix beyond the bounds of a request, the leading part.
  task<chunk_prefix> leading_chunks(const client_space& opened, const wire::Prefix& prefix) {
    return resolve(opened, prefix, true, true);
  }
  template <class Request>
  auto chunks_of(const client_space& opened, const Request& asked) {
    return resolve(opened, *asked.prefix(), true);
  }
  /// The same, and a partial chunk may be without a session: for prompts that are named by all of their tokens.
  task<chunk_prefix> prompt_chunks(const client_space& opened, const wire::Prefix& prefix) {
    return resolve(opened, prefix, false);
  }
  /// The same for what is about to be stored or saved, see `tail`.
  task<chunk_prefix> stored_chunks(const client_space& opened, const wire::Prefix& prefix);
  /// A turn of a session: its tokens up to a base, and those that were sent. `prefix` names a session.
  task<turn_prefix> session_turn(const client_space& opened, const wire::Prefix& prefix, turn_parts wanted);
  /// The session has the tokens of the turn, unless it has ended since. Refused with `gone` if another turn has changed it.
  /// Returns why the session does not hold `hold`; empty: it does, or there is nothing to hold.
  task<std::string> save_turn(const hashed_turn& turn, std::optional<session_hold> hold);

  /// The objects of a transfer, for which the request takes room.
  task<batch_ptr> objects(scope_subject subject);
  task<leased_objects> objects(lease_ptr from, transfer_scope scope, uint16_t rank);
  /// The part of the prefix that the request selects. `stored`: see `stored_chunks`.
  template <class Request>
  task<prefix_objects> objects(client_space_ptr space, const Request& asked, bool stored);
  /// Runs, checked against the objects and the region.
  task<std::shared_ptr<const scatter_gather>> runs(const run_lists& sent, batch_ptr objects,
                                                   uint64_t region_bytes);

  /// Looks these objects up. Without `hold`, a store that other machines write to is asked for what no tier of this
  /// machine has. Nothing of such a store can be held, because others may remove it.
  task<lookup_answer> look_up(lookup_request question);
  /// A question about a prefix, in all tiers.
  lookup_request question(const space_ptr& space, const std::shared_ptr<const chunk_prefix>& prefix) const;
  /// The result of a job, which may be a failure. The frame's body is released. `spawn`: for a new actor, if none of `idle` is.
  template <class Result, class Job>
  task<Result> run(actor_pool& idle, caf::actor (*spawn)(caf::actor_system&), Job job);

  client_inbox& inbox() { return actor.inbox(); }

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
  /// `in_session`: a partial chunk is refused without a session. `cut`: see `keep_leading_part`.
  task<chunk_prefix> resolve(const client_space& opened, const wire::Prefix& prefix, bool in_session,
                             bool cut = false);
  /// Asks a session's actor. The trust group is asked for it, unless the client has used it lately and it has not ended.
  /// The answer's failure is `gone` if the session has ended. `alone`: no further request begins meanwhile.
  template <class Answer, class Message>
  task<Answer> ask_session(session_id wanted, Message message, bool alone);
  /// Searches the indexes of the tiers.
  task<lookup_answer> search_tiers(lookup_request question);
  /// Does the same, and asks the store of this tier for the rest.
  task<lookup_answer> search_with(const tier_handle& shared, lookup_request question);
  /// `objects`: about as many as the chunks have.
  task<chunk_prefix> hash_rest(prefix_resolver& resolver, size_t objects);
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

/// The object that ended the load early, by the numbers of the wire.
inline std::optional<wire::Missing> missing_of(const load_result& done, const transfer_scope& scope,
                                               uint16_t rank, const space_spec& spec) {
  if (!done.missing)
    return std::nullopt;
  prefix_object object = scope.object(*done.missing, spec, rank);
  return wire::Missing(object.chunk, object.pool, object.rank, done.damaged);
}

/// A region for copiers; kept until the last copy of the result is destroyed.
outside_memory outside(const std::shared_ptr<const client_region>& region);

/// The tier on a store that other machines write to, if it may be searched and serves; bit n of `tiers`: tier_kind n, 0: all. Null:
/// there is none.
const tier_handle* shared_store(const trust_group& group, uint32_t tiers);

// The tier to which a prefetch or a move brings chunks.

/// Whether chunks can be brought up to this tier now, which is host memory or a faster one; otherwise the request is refused.
bool can_bring_to(client_request& request, tier_kind to);

/// What comes into the tier may take so many bytes there, so that a chain does not evict its own beginning.
uint64_t room_to_bring(const trust_group& group, tier_kind to);

} // namespace terrace::actors

#include "actors/connection/request_awaits.hpp" // IWYU pragma: export
