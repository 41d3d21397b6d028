// libterrace: the C++ client of a Terrace daemon.
//
//   auto daemon = connection::connect({.path = "/run/terrace/terrace.sock", .name = "my-engine"});
//   auto space = daemon->open_space({.model = "llama", .dtype = "bf16", .layout = "paged",
//                                    .pools = {{.name = "kv", .object_bytes = 4 << 20}}});
//   auto hit = daemon->lookup({.in = *space, .what = prefix::of_tokens(tokens), .lease = true});
//   auto copied = daemon->load_under_lease(hit->held, {.count = hit->found_chunks}, destinations);
//
// Threads: a connection is used by one thread at a time, with all its handles and tickets; open one per
// thread. It has no thread of its own, and works only during calls.
//
// Time: a call with a deadline returns by then. A call without one returns when its answer arrives, or when
// the daemon is lost, which is detected immediately. A call that timed out has asked the daemon to cancel;
// memory passed to it (of a region) may still be written until a later call on that region has been answered.
//
// Daemon loss: every call and every open ticket fails with `errc::gone` immediately, until `reconnect`
// succeeds. An engine should treat it as a miss and continue.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "client/arrivals.hpp"
#include "client/bell.hpp"
#include "client/handles.hpp"
#include "client/layer_ring.hpp"
#include "client/operators.hpp"
#include "client/policies.hpp"
#include "client/region.hpp"
#include "client/session.hpp"
#include "client/status.hpp"
#include "client/types.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace terrace::client {

struct lookup_result {
  uint32_t requested_chunks = 0;
  uint32_t found_chunks = 0; ///< leading chunks that are present
  uint64_t found_tokens = 0;
  uint64_t usable_tokens = 0;   ///< ends at least one token before the prompt's end
  std::vector<tier_kind> tiers; ///< per found chunk: its fastest tier
  lease held;                   ///< the lease, if it was requested and anything was found
  uint64_t first_token = 0;     ///< position in the prompt at which the first chunk begins
  std::optional<missing_object>
      missing;                 ///< the first absent object; none if all were found, or the lease is full
  std::vector<digest> digests; ///< digests of the requested chunks, if asked for
  uint32_t digest_width = 0;   ///< width of `digests` on the wire, in bytes; 0: none were requested
  /// Set by `await_lookup`: tokens per chunk in the lookup's space; otherwise 0.
  uint32_t chunk_tokens = 0;
  /// Further chunks that are present but faster to compute (space_spec).
  uint32_t recompute_chunks = 0;
  std::optional<session_point> session; ///< set by a lookup in a session: what the session has now
  uint32_t tail_tokens = 0;             ///< not 0: the last found chunk is partial and has this many tokens
  std::vector<uint64_t> cursors; ///< the saved cursors, if the found prefix ends where the saved turn ends
  std::vector<uint8_t>
      logits; ///< logits of the prompt's last token, if they were requested and the whole prompt was found
};

/// A prompt whose last token's logits are to be saved. All its chunks are stored, the tail included.
struct prompt_to_save {
  space in;
  prefix what; ///< the tokens, or those that continue a session; the tail is implied
  std::span<const uint8_t> logits;
  std::span<const uint64_t> cursors; ///< one cursor for each pool, or none
  request_options options;
};
struct saved_prompts {
  uint64_t prompts = 0; ///< prompts that the trust group keeps now
  uint64_t bytes = 0;
};

struct connect_options {
  std::string path;                ///< path of the daemon's socket
  std::string name = "libterrace"; ///< shown by `terrace status`
  /// Only `status`, `policies` and operators' calls will be made; connects also when the daemon is full.
  bool observes = false;
  /// How long a waiting call polls for its answer before it sleeps, up to 1 ms (docs/operations.md). 0: it
  /// does not poll.
  std::chrono::microseconds busy_poll{0};
  uint32_t socket_buffer_bytes = 1U << 20; ///< requested in both directions; the kernel may grant less
  /// First pause between attempts to reconnect; doubled at each failure.
  std::chrono::milliseconds backoff_least{10};
  /// Upper limit of the pause; the actual pause is a random part of it.
  std::chrono::milliseconds backoff_most{2000};
};

class connection {
 public:
  /// Connects and performs the handshake.
  static result<connection> connect(connect_options options, deadline until = {});

  /// Performs the handshake on a connected stream socket. `reconnect` works if `options.path` is set.
  static result<connection> over(unique_fd socket, connect_options options, deadline until = {});

  connection(connection&&) noexcept;
  connection& operator=(connection&&) noexcept;
  ~connection();

  // ---- the connection ----

  const daemon_info& daemon() const;

  /// False once the daemon is known to be lost. Makes no system call: the next call that uses the socket
  /// notices a loss.
  bool alive() const;

  /// A descriptor for the caller's event loop. It becomes readable when answers have arrived or the daemon is
  /// lost, whichever call notices the loss; then call `poll`. `reconnect` closes it, and afterwards it is
  /// another one.
  int descriptor() const;

  /// Makes one attempt if the back-off has passed; otherwise fails with `gone` immediately, without a system
  /// call, so that it can be called before every request. Opens the spaces and registers the regions of this
  /// connection again; previous leases, reservations and tickets are gone. Returns true if it is the same
  /// daemon. Reports earlier connections of which this process holds nothing any more as finished, so that
  /// the daemon can release their memory.
  result<bool> reconnect(deadline until = {});

  // ---- spaces and regions ----

  result<space> open_space(const space_spec& spec, deadline until = {});
  /// Opens the space that has this number in `status`, for operators: a salt need not be known. It is not opened again
  /// by `reconnect`. Errors: `not_found`, `denied`.
  result<space> open_space(uint32_t number, deadline until = {});
  /// The space can no longer be used; its objects stay. Errors: `busy` while the connection holds leases in it.
  result<void> close_space(const space& opened, deadline until = {});

  /// The pools of a space, including one per layer group. Valid until a space is opened. Empty if there is no
  /// such space.
  std::span<const open_pool> pools_of(const space& opened) const;

  /// `memory` may be any memfd; it should have F_SEAL_SHRINK. The descriptor is duplicated.
  result<registered_region> register_region(int memory, uint64_t bytes, deadline until = {});
  result<registered_region> register_region(const region& memory, deadline until = {}) {
    return register_region(memory.descriptor(), memory.size(), until);
  }

  /// Registers memory of a GPU, or of its substitute in host memory ("host"). Loads and stores move whole
  /// objects in it as in any region. A request fails with `gone` if the GPU's process has ended; unregister
  /// the region and register it again.
  result<registered_region> register_device_region(const device_allocation& memory, deadline until = {});
  /// Registers memory of at most 256 KiB in which the device ("host", or the UUID of a GPU) writes the
  /// generations of loads into its memory (layer_ring.hpp). It is also an ordinary region. `events`: this
  /// many of the generations, from the first one on, say that an event of the GPU's process was recorded; its
  /// handle is at the end of the memory (layer_events.hpp). Close the opened events before you unregister the
  /// region.
  result<registered_region> register_generations(const region& memory, const std::string& device,
                                                 deadline until = {}, uint32_t events = 0);
  /// Returns the bell of this connection, the same one each time. A store needs it if its `after` has not
  /// been reached when the store arrives.
  result<client::bell> bell(deadline until = {});
  /// Waits until neither the daemon nor a device acting for it accesses the memory: then it may be freed.
  result<void> unregister(registered_region region, deadline until = {});

  // ---- requests that wait for their answer ----

  result<lookup_result> lookup(const lookup_request& request, deadline until = {});

  /// Returns the answer to another connection's lookup, as soon as it is available, also if that lookup
  /// starts after this call. Its lease ends when all holders have released it. Errors: `gone` if the lookup
  /// had no answer or its lease has ended, `cancelled`, and `deadline`, also for a lookup that never starts.
  result<lookup_result> await_lookup(const lookup_id& id, deadline until = {},
                                     const request_options& options = {});

  /// Ends another connection's lookup or, if it has been answered, that connection's hold on its lease.
  /// False: the lookup is unknown, or nothing of it is left.
  result<bool> cancel_lookup(const lookup_id& id, deadline until = {});

  /// Returns the locations of leased objects. Maps segments of the daemon's arena when first needed. `denied`
  /// in a group that maps no memory: use `load`. `pools`: numbers of the requested pools, ascending; empty:
  /// all.
  ///
  /// If it returns fewer chunks than requested, host memory had no room for more. Read these, then request
  /// the rest with `earlier` given up. `no_space`: leases leave no room at all; `load` needs none.
  result<located_objects> read_lease(const lease_id& id, chunk_range range = {}, deadline until = {},
                                     std::span<const uint8_t> pools = {},
                                     earlier_places earlier = earlier_places::kept,
                                     const request_options& options = {});

  /// Copies leased objects out of the mapped arena, on this thread, without the daemon. `into` has one
  /// destination per object (chunk by chunk, pool by pool), each of the object's size. Returns the number of
  /// bytes: fewer than requested if the daemon could not read an object. Chunks that do not fit in host
  /// memory at once are copied piece by piece; this gives up the locations that `read_lease` returned for
  /// this lease before. Errors: those of `read_lease`.
  result<uint64_t> load_under_lease(const lease& held, chunk_range range,
                                    std::span<const std::span<uint8_t>> into, deadline until = {},
                                    std::span<const uint8_t> pools = {},
                                    earlier_places earlier = earlier_places::kept);

  /// The daemon copies into a region.
  result<load_result> load(const load_request& request, deadline until = {});

  /// Brings objects of lower tiers into host memory before anybody loads them. `cancel` ends it early; the
  /// answer then says what has arrived.
  result<prefetch_result> prefetch(const prefetch_request& request, deadline until = {});

  /// The daemon copies from a region. After the answer, the region may be overwritten.
  result<store_result> store(const store_request& request, deadline until = {});

  result<reservation> reserve(const reserve_request& request, deadline until = {});
  result<store_result> commit(reservation written, deadline until = {}, const request_options& options = {});

  // ---- sessions: docs/sessions.md ----

  /// Opens a conversation whose turns send only their new tokens. It ends with its handle or with this
  /// connection, unless it is kept, and with the daemon.
  result<session> open_session(const space& where, const session_options& options = {}, deadline until = {});

  /// Opens a session with the first `tokens` of another one, or with fewer, up to the start of a chunk: see
  /// `session::tokens`.
  result<session> fork_session(const session& turns, uint64_t tokens, bool keep = false, deadline until = {});

  /// Begins a turn: looks up `prompt`, whose first `unchanged` tokens are those of the session, and makes it
  /// the session's. Sends only what is new, or the whole prompt if the daemon does not know the session, or
  /// knows it with other tokens. `request` gives everything else; the items in its prefix are those of the
  /// whole prompt. If its prefix has a tail, the partial chunk at the end of the saved turn is found, too.
  result<lookup_result> lookup(session& turns, std::span<const uint32_t> prompt, uint64_t unchanged,
                               lookup_request request = {}, deadline until = {});

  /// Ends a turn: makes `prompt`, with what the model has said, the session's. A held session holds what the
  /// tiers have of it, and releases what it held before. `items`: those of the whole prompt. Sends as little
  /// as `lookup` does.
  result<saved_session> save(session& turns, std::span<const uint32_t> prompt, uint64_t unchanged,
                             std::span<const item> items = {}, const request_options& options = {},
                             deadline until = {});

  /// Ends a turn whose partial chunk is stored, too, in all pools and on all ranks. Its end is saved with it,
  /// and so are `cursors`, one for each pool or none; lookups that find this end return them. Error:
  /// `not_found` if an object of the partial chunk is missing; the session then stays at its last saved turn.
  result<saved_session> save_with_tail(session& turns, std::span<const uint32_t> prompt, uint64_t unchanged,
                                       std::span<const uint64_t> cursors = {},
                                       std::span<const item> items = {}, const request_options& options = {},
                                       deadline until = {});

  /// Keeps the logits of a prompt's last token, so that an identical prompt needs no prefill
  /// (lookup_request::logits). Errors: `not_found` if an object of its chunks is missing; `no_space`.
  result<saved_prompts> save_prompt(const prompt_to_save& request, deadline until = {});

  /// Returns a handle for a session that another connection of the trust group has opened. `at`: what the
  /// session has.
  session adopt_session(const space& where, const session_id& id, const session_point& at,
                        const session_options& options) const;

  /// Returns false if there is no such session, which is no error.
  result<bool> close_session(const session_id& id, deadline until = {});

  /// Returns the sessions of the trust group.
  result<sessions_status> sessions(deadline until = {});

  /// Returns one session; none: there is no such session.
  result<std::optional<session_status>> session_status_of(const session_id& id, deadline until = {});

  /// Reports how an inference request ended.
  result<void> end_inference(const inference_end& ended, deadline until = {});

  /// Removes all objects of the space, or of the whole trust group; once it returns, no restart brings them
  /// back.
  result<clear_result> clear(const space* only = nullptr, deadline until = {});

  result<daemon_status> status(deadline until = {});

  /// The policy of each tier, and what the configured shadow policies would have hit.
  result<policies_status> policies(deadline until = {});

  /// Sets the eviction policy of a tier ("host", "disk"); its residents stay. Allowed for the daemon's own
  /// user and root. Returns the previous policy. Errors: `denied`, `not_found`, `bad_request` listing the
  /// known policies.
  result<std::string> set_policy(const std::string& tier, const std::string& policy, deadline until = {});

  // ---- for operators: allowed for the daemon's own user and root, otherwise `denied` ----

  /// Returns what has come into or left the tiers of the trust group since `from`; a new cursor begins with
  /// what is there. Waits until there is something. Errors: `deadline`: nothing has happened;
  /// `gone`: events since `from` are lost, so begin with a new cursor.
  result<event_part> subscribe(const event_cursor& from, uint32_t events_max = 1024, deadline until = {});

  /// Returns the lookups under a lease with numbers above `after`, of which the daemon keeps the last 1,024 with 65,536
  /// digests. `waits`: until there is one. Errors: `deadline`.
  result<recent_lookups> recent(uint64_t after, bool waits, deadline until = {});

  /// Returns the leases of the trust group, oldest first: at most 1,024 with numbers above `after`.
  result<leases_status> leases(uint64_t after = 0, deadline until = {});

  /// Recounts everything of the trust group while it serves, and compares the result with the daemon's
  /// accounting. Each difference is an error in the daemon. Errors: `busy` while another check is in
  /// progress.
  result<check_result> check(deadline until = {});

  /// Ends a lease for its owner and all readers, which get `gone` from then on. What they may be reading in
  /// place stays until they release it or end. Errors: `not_found`.
  result<revoke_result> revoke(const lease_id& id, deadline until = {});

  /// Keeps what is found of a prompt in its tiers until it is unpinned or the daemon ends, even after this
  /// connection has ended. Errors: `no_space` over lease.pin_percent.
  result<pin_result> pin(const prompt_request& request, deadline until = {});

  /// Ends the pin of exactly this prompt.
  result<unpin_result> unpin(const prompt_request& request, deadline until = {});

  /// Removes the objects of all chunks of the prompt. Objects under a lease stay readable for its holders,
  /// but nobody finds them again.
  result<clear_result> evict(const prompt_request& request, deadline until = {});

  /// The remote tiers of the trust group: none, or one.
  result<std::vector<remote_state>> remote_status(deadline until = {});
  /// Asks the store of the remote tier once. Errors: `unsupported` without such a tier.
  result<remote_probe_result> remote_probe(deadline until = {});
  /// Removes the values that clears have left behind there. The same errors.
  result<remote_sweep_result> remote_sweep(const remote_sweep_request& what, deadline until = {});

  /// Says of each chunk of the prompt where it is, or why it is a miss. Counts no hit, and no policy is told.
  result<explain_result> explain(const prompt_request& request, deadline until = {});

  /// Moves the objects of all chunks of the prompt to host memory or to disk. Objects under a lease stay in
  /// host memory as well. Errors: `unsupported` without a disk.
  result<move_result> move(const prompt_request& request, tier_kind to, deadline until = {});

  /// Returns the quotas of the trust group and the usage of their tenants.
  result<std::vector<tenant_status>> quotas(deadline until = {});

  /// Changes a quota until the configuration is reloaded with other quotas. Returns what `quotas` does.
  /// Errors: `not_found` listing the names, `bad_request`.
  result<std::vector<tenant_status>> set_quota(const quota_change& change, deadline until = {});

  /// Sets the log level to "trace", "debug", "info", "warning" or "error" until the daemon restarts or
  /// reloads its configuration. Returns the previous level. Errors: `bad_request` listing the levels.
  result<std::string> set_log_level(const std::string& level, deadline until = {});

  /// Shuts the daemon down in order: now, or, with `when_idle`, once the last client has left; until then it
  /// admits no other one. Returns the number of clients of all trust groups.
  result<uint32_t> shut_down(bool when_idle, deadline until = {});

  // ---- the same, any number in flight; answers may arrive in any order ----
  //
  // Submitting waits only while the daemon's credits are exhausted, until `until` at most; the remaining time
  // is sent to the daemon as the request's deadline.

  result<ticket<lookup_result>> submit_lookup(const lookup_request& request, deadline until = {});
  result<ticket<lookup_result>> submit_await_lookup(const lookup_id& id, deadline until = {},
                                                    const request_options& options = {});
  result<ticket<located_objects>> submit_read_lease(const lease_id& id, chunk_range range = {},
                                                    deadline until = {}, std::span<const uint8_t> pools = {},
                                                    earlier_places earlier = earlier_places::kept,
                                                    const request_options& options = {});
  result<ticket<load_result>> submit_load(const load_request& request, deadline until = {});
  result<ticket<prefetch_result>> submit_prefetch(const prefetch_request& request, deadline until = {});
  result<ticket<store_result>> submit_store(const store_request& request, deadline until = {});
  result<ticket<reservation>> submit_reserve(const reserve_request& request, deadline until = {});
  result<ticket<store_result>> submit_commit(reservation written, deadline until = {},
                                             const request_options& options = {});

  /// Takes the result and empties the ticket. If it fails with `errc::deadline` because of its own `until`,
  /// the ticket remains valid and can be waited for again.
  result<lookup_result> wait(ticket<lookup_result>& under_way, deadline until = {});
  result<located_objects> wait(ticket<located_objects>& under_way, deadline until = {});
  result<load_result> wait(ticket<load_result>& under_way, deadline until = {});
  result<prefetch_result> wait(ticket<prefetch_result>& under_way, deadline until = {});
  result<store_result> wait(ticket<store_result>& under_way, deadline until = {});
  result<reservation> wait(ticket<reservation>& under_way, deadline until = {});

  /// Receives available answers; if there is none, waits for at least one until `until`. Returns the number
  /// of answers received; see any_ticket::ready. Returns 0 if nothing is in flight, and if `signals` says so
  /// when a signal handler has interrupted the wait.
  result<uint32_t> poll(deadline until, on_signal signals = on_signal::goes_on);

  /// Asks the daemon to end a request, which is still answered: with `cancelled`, or with its result. Returns
  /// false if the daemon no longer knows the request.
  result<bool> cancel(const detail::any_ticket& under_way, deadline until = {});

  /// Asks the daemon to cancel the request, without waiting, and abandons it. When its answer arrives, it is
  /// dropped and its resources are released.
  static void give_up(detail::any_ticket& under_way);

  /// Returns a handle for a lease that another connection of the trust group took.
  lease adopt(const lease_id& id) const;

 private:
  struct location {
    uint64_t offset;
    uint64_t bytes;
    uint32_t segment;
  };

  explicit connection(std::shared_ptr<detail::core> core);

  template <class T, class Kind, class Build>
  static result<ticket<T>> submit(const std::shared_ptr<detail::channel>& to, Kind kind, Build&& build,
                                  deadline until);
  template <class T, class Kind, class Request>
  result<ticket<T>> submit_about(Kind kind, const Request& request, uint32_t region, deadline until,
                                 uint32_t progress_region = 0);
  template <class Table, class T, class Read>
  static auto take(ticket<T>& under_way, deadline until, Read&& read)
      -> result<decltype(read(std::declval<const Table&>()))>;
  template <class T>
  result<T> finish(result<ticket<T>> submitted, deadline until);
  struct turn_end { ///< The turn to save.
    bool tail = false;
    std::span<const uint64_t> cursors;
  };
  result<saved_session> save_turn(session& turns, std::span<const uint32_t> prompt, uint64_t unchanged,
                                  const turn_end& end, std::span<const item> items,
                                  const request_options& options, deadline until);
  template <class Attempt>
  auto in_session(session& turns, std::span<const uint32_t> prompt, uint64_t unchanged,
                  std::span<const item> items, deadline until, Attempt&& send) -> decltype(send(prefix()));
  result<uint32_t> region_id_of(const registered_region* region) const;
  result<uint32_t> region_id_of(const arrivals* progress) const; ///< `progress` null: returns 0.
  static result<void> map_segments(detail::channel& channel_, std::span<const location> locations,
                                   deadline until);

  std::shared_ptr<detail::core> core_;
};

/// The second half of load_under_lease, after reading the lease; for callers that read and copy separately.
result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into);

} // namespace terrace::client
