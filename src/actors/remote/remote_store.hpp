// REMOTE STORE: the mover of a remote tier, which is a Valkey or Redis server, a cluster of them, a bucket or a plugin's store that several machines share,
// and the keeper of the tier's index.
//
// The index has what this daemon believes to be in the store: what it has written there, and what it has found there for
// lookups. Others write to the store and evict from it. So each lookup that is not answered by the tiers above asks here first
// (`find_request`): what a presence book does not know is asked of the store, within a budget; what is there joins the index,
// and what is gone leaves it. A read verifies everything, and a value that is not as expected is a miss.
//
// Keys have the epoch token of the space and that of the realm (remote/epoch_token.hpp): both are learnt before a space is
// used. Values of Redis clients, which may be replaced, are named by a key of this run, so that no other machine finds them.
//
// There are three links to a server, because replies come in order: questions do not wait behind payloads, nor reads behind
// what is written. Payloads are received into host memory where they shall lie, and sent from there, at most 1 MiB for each command (8 MiB to a bucket or a plugin).
//
// Clients wait for questions and reads. A server that says nothing to one of them for `patience` ends all three connections:
// who waits is answered `away`, once the kernel no longer accesses its memory, and until the server has let us in again requests
// are answered at once: `away`, or nothing found. If a connection is lost otherwise while it serves, we connect again at once, and payloads
// that were under way are asked for or written once more, if the server lets us in within `patience`.
//
// In a cluster each primary is such a server, a node, and has the keys of its slots. Any node tells who has which slots. It is asked
// when a command was redirected or a node is lost; the command goes on where the node says.
//
// If the address says so, payloads are read from the replicas of a primary as well. Such a node has the connection for reads alone. Whatever a
// replica does not deliver is read from its primary before it is a miss: a replica has no part in what is believed of the store.
//
// A bucket of an S3 store is such a server as well: its links have several HTTP connections each, and answer what was asked of them
// when it is done. It cannot tell of changes. A plugin cannot either; each of its links is a process (plugin_link.cpp).
//
// In a realm that encrypts (remote/value_cipher.hpp), values are encrypted into memory of their own before they are written, and decrypted
// where they were received before anybody is told of them. A store that compresses (remote/value_compression.hpp) does the same with values
// of 16-bit floats before they are encrypted; what comes compressed is always expanded. All that is done here, one value after the other and
// `values_bytes` in a turn, so that no answer and no timer of a connection waits for long.
//
// remote_store.cpp has the actor and what operators ask of it, remote_nodes.cpp the connections, remote_cluster.cpp who tells where these go, remote_moves.cpp the objects on their way, remote_presence.cpp what the store has,
// remote_epochs.cpp spaces and clears, and store_inspector.cpp what operators ask of a store over connections of their own.
#pragma once

#include "actors/group/trust_group.hpp"
#include "actors/interfaces.hpp"
#include "actors/remote/remote_plan.hpp"
#include "actors/remote/store_link.hpp"
#include "metrics/remote_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/epoch_token.hpp"
#include "remote/presence_book.hpp"
#include "remote/slot_map.hpp"
#include "remote/store_reports.hpp"
#include "remote/value_cipher.hpp"
#include "remote/value_compression.hpp"
#include "remote/value_header.hpp"
#include "runtime/answer.hpp"
#include "runtime/home.hpp"
#include "runtime/task.hpp"
#include "storage/state_records.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/mover_messages.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace terrace::actors {

struct values_turn {}; ///< the remote store sends this to itself

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::values_turn)

namespace terrace::actors {

/// Whether the store is there. The actor sets it; any thread may read it.
class remote_service final : public tier_availability {
 public:
  bool reads() const override { return serves_.load(std::memory_order_acquire); }
  bool writes() const override { return reads(); }
  std::chrono::seconds since() const; ///< the last change
  std::string reason() const override;
  std::string notice() const override;

  void serves();
  void stops(std::string why);
  void set_notice(std::string notice);

 private:
  std::atomic<bool> serves_{false};
  mutable std::mutex mutex_;
  std::string why_ = "it is connecting";
  std::string notice_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

struct remote_store_arguments {
  remote_plan plan;
  std::weak_ptr<const trust_group> group; ///< its tiers are cleared when another machine clears
  std::shared_ptr<remote_service> service;
  std::shared_ptr<read_meter> meter;
  std::shared_ptr<metrics::tier_probe> probe;
  std::shared_ptr<metrics::remote_probe> counts;
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
};

class remote_store {
 public:
  struct shell {
    const char* name = "remote store";
    std::unique_ptr<remote_store> work;
  };
  using interface = remote_store_actor::extend<caf::reacts_to<runtime::io_done>, caf::reacts_to<values_turn>>;
  using self_pointer = caf::stateful_actor<shell, runtime::homed<interface::base>>*;

  /// Objects that a lookup asks for at a time.
  static constexpr size_t slice_objects = 128;
  /// Each object costs a request there, so a lookup of what nobody has asks for few; the slices double. Only of spaces where not all of a
  /// prefix counts: of others single chunks are asked for (remote::prefix_probe).
  static constexpr size_t first_slice_of_bucket = 8;
  /// A store with slow round trips, for which lookups get more time, gets more as well.
  static constexpr std::chrono::milliseconds patience_min{150}, patience_for_writes{2'000};
  /// Each request to a bucket or a plugin may take so long, because its store consists of files and gateways.
  static constexpr std::chrono::milliseconds patience_of_bulk{2'000}, patience_of_bulk_for_writes{10'000};
  /// Before a server whose connection was lost is connected to again, at most. A plugin that has ended may end again at once.
  static constexpr std::chrono::milliseconds before_another_try{50};
  /// Nodes of a cluster are asked for its slots no more often.
  static constexpr std::chrono::milliseconds between_maps{100};
  /// The same of a cluster that does not say who has a slot, or does not serve.
  static constexpr std::chrono::seconds between_doubts{2};
  /// A cluster that is read from its replicas is asked for its slots so often: nobody tells of a replica that has joined or come back.
  static constexpr std::chrono::seconds between_replicas{10};
  /// A store that refuses a clear, as a cluster that does not serve yet, is told of it again after this time.
  static constexpr std::chrono::seconds between_clears{1};
  static constexpr size_t nodes_max = 1'024;
  static constexpr size_t nodes_max_with_replica = nodes_max / 2; ///< of which the rest is kept for primaries
  /// Encrypted or decrypted in a turn: 0.1 to 0.2 ms, as the kernel takes to copy a piece of a connection.
  static constexpr size_t values_bytes = store_link::piece_bytes;
  static constexpr size_t bytes_of_a_value = 4'096; ///< take as long as beginning a value
  static constexpr size_t times_to_compress = 3;    ///< it takes as long as encrypting a byte
  static constexpr const char* without_slots = "it has no slots any more";
  static constexpr uint32_t hops_max = 4; ///< of one command that is redirected

  remote_store(self_pointer self, remote_store_arguments arguments);

  // ---- called by the actor ----

  void start(tier_actor tier) { tier_ = std::move(tier); }
  caf::result<move_answer> on_move(const moved_objects& objects, bool writes);
  caf::result<find_answer> on_find(const find_request& request);
  caf::result<remove_values_answer> on_remove_values(const remove_values_request& request);
  caf::result<forget_answer> on_forget(const forget_request& request);
  void on_changes(const index_changes& changes);
  caf::result<remote::store_status> on_status();
  template <class Answer, class Request>
  caf::result<Answer> inspect(const Request& request);
  store_inspector_actor spawn_inspector();
  void on_credentials(const remote::store_credentials& with);
  void on_volume_joined();
  void on_io_done(const runtime::io_done& done);
  void on_values_turn();

 private:
  enum class phase : uint8_t { down, connecting, ready, closing };
  enum timer : uint64_t { map_timer = 1, budget_timer, replicas_timer, limit_timer, clears_timer };
  using time_point = std::chrono::steady_clock::time_point;
  using said = std::function<void(const remote::finished_command*)>; ///< null, once: the connection is lost

  /// A coroutine waits for `done`. The first `end` ends the wait; later ones change nothing.
  struct waiting {
    task_event done;
    bool ended = false;
    bool learnt = false; ///< tokens: a store that refuses them is not asked again at once
    void end() {
      if (!std::exchange(ended, true))
        done.set();
    }
  };
  /// The time that a lookup has.
  struct budget {
    time_point until;
    bool over = false;
    std::shared_ptr<waiting> now;
  };
  struct token_state {
    remote::epoch_token token;
    std::string key;
    bool clearing = false;         ///< this machine clears its tiers, because another one has cleared
    uint64_t read_at = UINT64_MAX; ///< the node that has told it last, and tells when it changes
  };
  struct space_state {
    space_id id{};
    space_fingerprint fingerprint{};
    remote::realm_space name{};
    bool own = false; ///< named by a key of this run
    token_state epoch{};
    uint64_t tier_epoch = 0; ///< of the tier's index: what was reserved before was cleared
  };
  using space_state_ptr = std::shared_ptr<space_state>;

  /// One request of the tier.
  struct transfer {
    moved_objects moved;
    bool writes = false;
    space_state_ptr space;
    uint64_t epoch = 0; ///< of a space that is shared
    answer<move_answer> reply;
    move_answer outcome;
    std::vector<std::optional<uint64_t>>
        generations; ///< of the objects: that of the first part which was read
    size_t parts_left = 0;
    std::vector<size_t> parts_left_of; ///< each object
    bool late = false;                 ///< it was answered before all had come
  };
  using transfer_ptr = std::shared_ptr<transfer>;
  /// Values that leave the store, and for which somebody waits.
  struct removal : waiting {
    size_t left = 1; ///< commands that have not been answered, and whoever asks for them
    error failure;
    void one_less() {
      if (--left == 0)
        end();
    }
  };
  /// The parts of an object that are read from a replica. They wait for one another: the primary, if it is asked, is asked for all, so no
  /// object consists of parts of two nodes, one of which may lag behind the other.
  struct replica_read {
    uint64_t node = 0; ///< its number
    size_t left = 0;
    bool failed = false;
    std::string damage{}; ///< what was expected and what the replica had; empty: nothing was wrong
  };
  enum class tries : uint8_t { first, lost, second };
  /// One command to the store.
  struct step {
    transfer_ptr of;                      ///< null: a value is removed
    std::shared_ptr<removal> removed_for; ///< null: nobody waits for that
    size_t object = 0;
    uint32_t part = 0;
    uint64_t tag = 0; ///< of the command
    bool own = false;
    remote::remote_identity identity{};
    std::array<std::byte, remote::value_header_bytes> header{}; ///< that was received
    uint64_t begin = 0, bytes = 0;                              ///< of the payload in this part
    uint64_t stored = 0;                      ///< bytes behind the header; fewer: compressed
    bool asking = false;                      ///< its slot is on its way to this node
    uint32_t hops = 0;                        ///< it was redirected so often
    tries tried = tries::first;               ///< lost: its connection was lost, and it waits for another one
    std::shared_ptr<replica_read> at_replica; ///< null: a primary is asked
    bool compresses = false;                  ///< the payload, before it is written
    std::unique_ptr<std::byte[]> changed;     ///< what is written, if it is not the payload
    std::unique_ptr<remote::value_packing> packing;             ///< fills it
    std::unique_ptr<remote::value_sealing> sealing;             ///< fills it, and the header
    std::unique_ptr<remote::value_opening> opening;             ///< decrypts what was received
    std::unique_ptr<remote::value_unpacking> unpacking;         ///< expands what was received
    bool crossed = false;                                       ///< nothing is left to be done with the bytes
    tl::expected<uint64_t, remote::rejected_value> verified{0}; ///< of what was received, once it has crossed

    bool reads() const { return of && !of->writes; }
    const moved_object& moved() const { return of->moved.objects[object]; }
    std::span<std::byte> payload() const;
    std::span<std::byte> to_write() const; ///< behind the header, once it has crossed
  };
  using step_ptr = std::shared_ptr<step>;
  /// A connection for payloads in one direction.
  struct lane {
    std::unique_ptr<store_link> link;
    remote::byte_window window;
    std::deque<step_ptr> waiting;
    uint64_t waiting_bytes = 0;
    std::deque<step_ptr> sent; ///< in the order in which they were asked for
    uint64_t bytes_under_way() const { return waiting_bytes + window.in_flight(); }
    bool has_steps() const { return !waiting.empty() || !sent.empty(); }
    bool room() {
      return !waiting.empty() && link->ready() && link->server()->has_room(2) &&
             window.has_room(waiting.front()->bytes);
    }
  };
  struct expected_replies {
    said told; ///< called for each of them
    size_t left = 1;
  };
  struct question_to_store {
    std::function<void(remote::store_commands&)> ask;
    expected_replies replies;
    bool asking = false;
  };
  /// The only server, or a primary of the cluster, or a replica. One that becomes the other is another node.
  struct node {
    node(remote_store& store, uint64_t its_number, remote::store_address where);

    uint64_t number; ///< of no other node, so that completions of one that has left go to nobody
    remote::store_address address;
    std::unique_ptr<store_link> questions_link;
    lane reads, writes; ///< the latter with removals
    phase now = phase::down;
    remote::breaker breaker;
    std::string why, warned;     ///< it is out of service
    bool refused = false;        ///< it answers, and cannot be used
    bool served = false;         ///< it was in service when its connections were lost
    bool told = false;           ///< it tells which keys have changed
    uint32_t slots = 0;          ///< that it has, or its primary, if the store is a cluster
    std::vector<node*> replicas; ///< of a primary
    bool asked = false;          ///< a command was sent there that another node had redirected
    bool leaves = false;         ///< it has no slots any more
    std::deque<question_to_store> questions;
    std::deque<expected_replies> expected; ///< in the order of their replies

    std::array<store_link*, 3> links() { return {questions_link.get(), reads.link.get(), writes.link.get()}; }
    bool ready() const { return now == phase::ready; }
    bool is_replica() const { return address.of_replica; }
    bool uses(const store_link* link) const { return !is_replica() || link == reads.link.get(); }
  };
  /// Who tells where the server is, or who has which slots: sentinels, or nodes of the cluster.
  struct guides {
    std::unique_ptr<store_link> link;
    std::vector<remote::store_address> all;
    size_t next = 0;
    size_t tried = 0; ///< in this attempt
    bool asks = false, again = false, leaves = false, refused = false;
    std::string failure;        ///< why the last one did not tell; empty: it did
    uint64_t best = UINT64_MAX; ///< the node that has redirected a command last: it knows of the change
    time_point told_at{};
    remote::breaker breaker{{.failures_in_a_row = 1}};
  };
  /// What the store may have of some objects.
  struct beliefs {
    std::vector<std::string> keys; ///< of their first parts
    std::vector<remote::belief> of;
    std::vector<bool>
        removed; ///< an operator has removed the object since, or is about to: what the store says is older
    uint64_t epoch = 0; ///< of the keys
    remote::belief now_of(size_t object) const;
    std::optional<size_t> first_missing() const; ///< of what is known; nullopt: none is
  };

  // ---- the connections ----
  bool in_cluster() const { return with_.plan.address.at == remote::store_address::kind::cluster; }
  uint64_t bytes_of_each() const {
    return with_.plan.address.is_bulk() ? remote::bulk_part_bytes : remote::part_bytes;
  }
  bool is_bucket() const { return with_.plan.address.at == remote::store_address::kind::bucket; }
  node* add_node(remote::store_address address);
  node* node_at(const std::string& address, bool as_replica = false);
  node* node_of(std::string_view key) const;
  node* node_of(const step& of) const;
  node* reader_of(const step& of) const;
  bool serving() const;
  store_link::callbacks callbacks_of(uint64_t first_tag, std::chrono::nanoseconds silence_max,
                                     std::function<void(const remote::finished_command&)> finished);
  store_link::callbacks callbacks_of(uint64_t first_tag, std::chrono::nanoseconds silence_max,
                                     std::function<void(const remote::finished_command&)> finished, node& of);
  store_link::callbacks callbacks_of_reads(node& of);
  void connect(node& to);
  void connect_to_server(node& to);
  void on_link_ready(node& of);
  void on_ready(node& is);
  void tell_state();
  void close(node& lost, const std::string& why);
  void lose(node& lost);
  std::vector<step_ptr> take_lost(node& lost, bool again);
  void give_up(node& away);
  void hand_over(node& leaving);
  void after(std::chrono::nanoseconds time, uint64_t tag);
  void pump();
  void pump(node& with);
  void on_node_done(const runtime::io_done& done);
  void erase_left();
  void ask_guides();
  void ask_guide();
  void on_guide_ready();
  void on_guided(const remote::finished_command& told);
  void leave_guide(const std::string& why);
  void after_guide();
  void no_guide_tells(const std::string& why);
  void want_map();
  bool doubt_map();
  void use_map();
  void ask_for_replicas_later();
  void use_replicas(const std::vector<node*>& primaries);
  bool ends_its_reads(const node& leaving) const;
  std::vector<std::pair<token_state*, space_state_ptr>> all_tokens();
  bool lost_its_server(const remote::finished_command& told) const;
  node* redirected(const node& from, const remote::finished_command& told, uint32_t hops);
  void ask_store(node& at, std::function<void(remote::store_commands&)> ask, said told, size_t replies = 1,
                 bool asking = false);
  static void on_told(node& by, const remote::finished_command& finished);
  void take_invalidated(node& from);
  void run(task<> work, uint64_t number); ///< `work` ends with `ended(number)`
  void ended(uint64_t number) { tasks_.erase(number); }

  // ---- objects on their way ----
  task<> move(transfer_ptr all, uint64_t number);
  void begin_steps(const transfer_ptr& all);
  void limit(const transfer_ptr& all);
  void await_limit(time_point now);
  void on_limit();
  void fall_behind(const transfer_ptr& all);
  void answer_read(const transfer_ptr& all);
  remote::remote_identity identity_of(const transfer& of, size_t object) const;
  step_ptr step_of(const transfer_ptr& all, size_t object, uint32_t part,
                   const remote::remote_identity& identity) const;
  bool enqueue(step_ptr next, node* at);
  bool begin_next(lane& by);
  bool overtakes(const step& next, const lane& by) const;
  void begin(const step_ptr& next, remote::store_commands& server);
  void write(const step_ptr& next, remote::store_commands& server);
  remote::value_header header_of(const step& written) const;
  bool is_changed(const step_ptr& written);
  void cross(step_ptr next);
  size_t change_some(step& written, size_t bytes_max);
  size_t restore_some(step& read, size_t bytes_max);
  size_t verify_some(step& read, size_t bytes_max);
  void on_moved(node& of, lane& by, const remote::finished_command& finished);
  void fit_window(lane& reads);
  void finish_read(step_ptr done, const remote::finished_command& finished);
  remote::expected_part expected_of(const step& read) const;
  void settle_read(const step_ptr& done, const tl::expected<uint64_t, remote::rejected_value>& verified);
  void refused_by_replica(node& of, step_ptr done, const remote::finished_command& finished);
  void settle_at_replica(step_ptr done, bool delivered);
  void note_read(const replica_read& at_replica);
  void unanswered(step_ptr lost);
  void reject(step& done, bool ours);
  void end(step& ended, move_outcome outcome);
  task<> deliver_read(transfer_ptr all, uint64_t number);
  void remove(const remote::remote_identity& object, bool own, uint64_t payload_bytes,
              const std::shared_ptr<removal>& by = nullptr);
  void to_read(uint64_t before) const;
  std::string key_of(const step& of) const;

  // ---- what the store has ----
  task<> find(find_request request, answer<find_answer> reply, uint64_t number);
  const tier_index& index_of(const trust_group& group) const;
  task<std::shared_ptr<beliefs>> ask_about(space_state_ptr space, batch_ptr objects,
                                           std::shared_ptr<budget> limit);
  task<bool> find_slices(find_request request, space_state_ptr space, std::shared_ptr<budget> limit);
  task<bool> probe_prefix(find_request request, space_state_ptr space, std::shared_ptr<budget> limit);
  static std::vector<remote::belief> of_chunks(const beliefs& objects, size_t each);
  task<bool> adopt(find_request request, space_state_ptr space, uint64_t epoch, batch_ptr present);
  task<bool> drop(batch_ptr gone);
  std::shared_ptr<budget> begin_budget();
  void on_budget();
  std::shared_ptr<beliefs> believed(const space_state& space, const object_batch& objects);
  std::shared_ptr<waiting> ask_unknown(const std::shared_ptr<beliefs>& what, const object_batch& objects);
  struct probing;
  void ask_node(node& at, const std::shared_ptr<probing>& all,
                std::vector<std::pair<size_t, uint32_t>> objects, bool asking, uint32_t hops);
  void note_presence(beliefs& what, size_t object, const remote::finished_command& told, time_point now);
  task<> remove_values(remove_values_request request, answer<remove_values_answer> reply, uint64_t number);
  void doubt(const std::unordered_set<std::string>& removed);
  remote::remote_identity identity_of(const space_state& space, const object_key& key) const;
  remote::remote_identity named(remote::remote_identity object) const;

  // ---- spaces ----
  space_state_ptr space_of(space_id id, const space_fingerprint& fingerprint, bool own);
  space_state_ptr new_space(space_id id, const space_fingerprint& fingerprint, bool own) const;
  const space_state_ptr& earlier(const space_fingerprint& fingerprint);
  std::string state_folder() const;
  std::string store_name() const;
  bool told(const token_state& of) const;
  bool usable(const token_state& of) const;
  bool usable(const space_state& space) const { return space.own || (usable(realm_) && usable(space.epoch)); }
  uint64_t epoch_of(const space_state& space) const;
  /// Returns true if the space is usable. Learns its tokens if they may have changed, again if the store tells of a change of one
  /// while another is read. `limit`: null: until the connection ends.
  task<bool> learn_space(space_state_ptr space, std::shared_ptr<budget> limit);
  std::shared_ptr<waiting> prepare(space_state_ptr space);
  task<> prepare_spaces(uint64_t number);
  task<bool> learn(token_state& of, space_state_ptr space);
  task<> clear_here(space_state_ptr space);
  task<space_id> id_of(space_state_ptr space);
  task<> clear_volume(uint64_t number);
  void keep_tokens();
  space_tokens tokens_now() const;
  task<> write_tokens_down(uint64_t number);
  void clear_again();
  task<> forget_lost(space_state_ptr space);
  task<> clear_there(space_state_ptr space, answer<forget_answer> reply, forget_answer told, uint64_t number);
  void read_records();
  task<error> record(pending_clear clear, bool settled);
  task<> settle(uint64_t number);

  self_pointer self_;
  remote_store_arguments with_;
  tier_actor tier_;
  remote::realm own_names_;                      ///< of this run
  std::unique_ptr<remote::value_cipher> cipher_; ///< null: values are not encrypted
  remote::value_compressor compressor_;
  std::deque<step_ptr> crossing_; ///< values to be compressed and encrypted, or to be decrypted and expanded
  bool crosses_ = false;          ///< a `values_turn` is on its way
  std::mt19937_64 random_;
  const uint64_t run_; ///< a random number
  guides guides_;
  std::string warned_; ///< no node of the cluster tells
  uint64_t next_node_ = 0;
  std::map<uint64_t, std::unique_ptr<node>> nodes_; ///< without a cluster there is one
  remote::slot_map slots_;
  std::vector<node*> owners_; ///< of the slots; null: nobody
  uint64_t next_step_ = 1;
  uint64_t bytes_to_read_ = 0;
  uint64_t refused_values_ = 0;
  remote::presence_book book_;
  std::vector<std::weak_ptr<beliefs>> asked_about_; ///< what lookups and writes wait for
  std::deque<std::weak_ptr<budget>> budgets_;       ///< in the order of their ends
  bool timing_ = false;
  std::multimap<time_point, transfer_ptr> limits_; ///< reads for which nobody waits any longer then
  std::set<time_point> limit_timers_; ///< that are in the ring; each ends earlier than those before it
  token_state realm_;
  std::map<space_id, space_state_ptr> spaces_;
  std::map<space_fingerprint, space_state_ptr> earlier_; ///< spaces of an earlier run that are not used yet
  std::vector<space_state_ptr>
      unheard_; ///< whose volume has not heard of a clear by others, for it has not joined; null: all spaces
  bool keeps_tokens_ = false, tokens_changed_ = false;
  bool recorded_ = false; ///< the state directory has clears that the store has not
  std::deque<std::pair<space_state_ptr, std::shared_ptr<waiting>>> preparing_;
  bool prepares_ = false;
  bool clears_again_ = false; ///< the timer for it runs
  uint64_t next_task_ = 0;
  std::unordered_map<uint64_t, task<>> tasks_; ///< in progress; last, because they refer to the others
};

/// Spawns it at `home`; it connects at once.
remote_store_actor spawn_remote_store(caf::actor_system& system, const runtime::home& home,
                                      remote_store_arguments arguments);

/// An operator asks about this store, by one request (store_inspector.cpp). Needs no remote store that runs.
store_inspector_actor spawn_store_inspector(caf::actor_system& system, const runtime::home& home,
                                            remote_plan store);

} // namespace terrace::actors
