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
  lease held;                   ///< if requested, and anything was found
  uint64_t first_token = 0;     ///< position in the prompt at which the first chunk begins
  std::optional<missing_object>
      missing;                   ///< the first absent object; none if all were found, or the lease is full
  std::vector<digest> digests;   ///< if requested: of the requested chunks
  uint32_t digest_width = 0;     ///< of `digests` on the wire, in bytes; 0: none were requested
  uint32_t chunk_tokens = 0;     ///< of `await_lookup`: tokens of a chunk in the lookup's space; otherwise 0
  uint32_t recompute_chunks = 0; ///< further ones are present, but computing them is faster (space_spec)
  std::optional<session_point> session; ///< what the session has now, of a lookup in a session
  uint32_t tail_tokens = 0;             ///< not 0: the last found chunk is a partial one, of so many tokens
  std::vector<uint64_t> cursors; ///< as they were saved, if what was found ends where the saved turn does
  std::vector<uint8_t>
      logits; ///< of the prompt's last token, if they were requested and all of the prompt was found
};

/// The logits of a prompt's last token, whose chunks are all stored, its tail included.
struct prompt_to_save {
  space in;
  prefix what; ///< tokens, or those that continue a session; its tail is implied
  std::span<const uint8_t> logits;
  std::span<const uint64_t> cursors; ///< one for each pool, or none
  request_options options;
};
struct saved_prompts {
  uint64_t prompts = 0; ///< of the trust group, that are kept now
  uint64_t bytes = 0;
};

struct connect_options {
  std::string path;                ///< path of the daemon's socket
  std::string name = "libterrace"; ///< shown by `terrace status`
  bool observes =
      false; ///< only `status`, `policies` and calls for operators will be made; connects also when the daemon is full
  /// How long a call that waits for an answer looks for it before it sleeps, up to 1 ms (docs/operations.md). 0: it does not.
  std::chrono::microseconds busy_poll{0};
  uint32_t socket_buffer_bytes = 1U << 20;      ///< requested in both directions; the kernel may grant less
  std::chrono::milliseconds backoff_least{10};  ///< between attempts to reconnect: doubled at each failure,
  std::chrono::milliseconds backoff_most{2000}; ///< up to this value; the actual pause is a random part of it
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

  /// False once the daemon is lost. Makes no system call: a loss is noticed by the next call that uses the
  /// socket.
  bool alive() const;

  /// For an event loop of the caller: readable when answers have arrived, or the daemon is lost (then call
  /// `poll`), whichever call notices the loss. Closed by `reconnect`, after which it is another.
  int descriptor() const;

  /// Makes one attempt if the back-off has passed; otherwise fails with `gone` immediately, without a system
  /// call, so that it can be called before every request. Opens the spaces and registers the regions of this
  /// connection again; previous leases, reservations and tickets are gone. Returns true if it is the same
  /// daemon. Earlier connections from which this process holds nothing any more are reported to the daemon as
  /// finished, so that it can release their memory.
  result<bool> reconnect(deadline until = {});

  // ---- spaces and regions ----

  result<space> open_space(const space_spec& spec, deadline until = {});
  /// The space can no longer be used; its objects stay. Errors: `busy` while the connection holds leases in it.
  result<void> close_space(const space& opened, deadline until = {});

  /// The pools of a space, including one per layer group. Valid until a space is opened. Empty: no such
  /// space.
  std::span<const open_pool> pools_of(const space& opened) const;

  /// `memory` may be any memfd; it should have F_SEAL_SHRINK. The descriptor is duplicated.
  result<registered_region> register_region(int memory, uint64_t bytes, deadline until = {});
  result<registered_region> register_region(const region& memory, deadline until = {}) {
    return register_region(memory.descriptor(), memory.size(), until);
  }

  /// Memory of a GPU, or of its substitute in host memory ("host"), in which loads and stores move whole objects as
  /// in any region. `gone` of a request: the process of the GPU has ended; unregister the region and register it again.
  result<registered_region> register_device_region(const device_allocation& memory, deadline until = {});
  /// Memory of at most 256 KiB in which the device ("host", or the UUID of a GPU) writes the generations of loads into its
  /// memory (layer_ring.hpp). It is a region like any other as well. `events`: so many of them, from the first one on, say that an
  /// event of the GPU's process was recorded, whose handle is at the end of the memory (layer_events.hpp). Close what was opened
  /// before it is unregistered.
  result<registered_region> register_generations(const region& memory, const std::string& device,
                                                 deadline until = {}, uint32_t events = 0);
  /// The bell of this connection, the same each time. Stores whose `after` has not been reached when they come need one.
  result<client::bell> bell(deadline until = {});
  /// Waits until the daemon accesses nothing of it any more, and no device for it: then the memory may be freed.
  result<void> unregister(registered_region region, deadline until = {});

  // ---- requests that wait for their answer ----

  result<lookup_result> lookup(const lookup_request& request, deadline until = {});

  /// The answer to another connection's lookup, as soon as it is available, also if that lookup starts after
  /// this call. Its lease ends when all holders have released it. Errors: `gone` if the lookup had no answer
  /// or its lease has ended, `cancelled`, and `deadline`, also for a lookup that never starts.
  result<lookup_result> await_lookup(const lookup_id& id, deadline until = {},
                                     const request_options& options = {});

  /// Ends another connection's lookup, or, if it has been answered, that connection's hold on its lease.
  /// False: the lookup is unknown, or nothing of it is left.
  result<bool> cancel_lookup(const lookup_id& id, deadline until = {});

  /// Returns the locations of leased objects. Maps segments of the daemon's arena when first needed. `denied`
  /// in a group that maps no memory: use `load`. `pools`: numbers of the requested pools, ascending; empty:
  /// all.
  ///
  /// If it returns fewer chunks than requested, host memory had no room for more. Request the rest, with
  /// `earlier` given up, once these are read. `no_space`: leases leave no room at all; `load` needs none.
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

  /// Objects of lower tiers are brought into host memory, before anybody loads them. `cancel` ends it early: then it is
  /// answered with what has arrived by then.
  result<prefetch_result> prefetch(const prefetch_request& request, deadline until = {});

  /// The daemon copies from a region. After the answer, the region may be overwritten.
  result<store_result> store(const store_request& request, deadline until = {});

  result<reservation> reserve(const reserve_request& request, deadline until = {});
  result<store_result> commit(reservation written, deadline until = {}, const request_options& options = {});

  // ---- sessions: docs/sessions.md ----

  /// A conversation whose turns send only their new tokens. It ends with its handle or with this connection, unless it is
  /// kept, and with the daemon.
  result<session> open_session(const space& in, const session_options& options = {}, deadline until = {});

  /// A session with the first `tokens` of another one, or with fewer, up to the start of a chunk: `session::tokens`.
  result<session> fork_session(const session& of, uint64_t tokens, bool keep = false, deadline until = {});

  /// A turn: looks up `prompt`, whose first `unchanged` tokens are those of the session, and makes it the session's.
  /// Sends only what is new; if the daemon does not know the session as this handle does, or not at all, the whole prompt.
  /// `request` gives everything else; the items in its prefix are those of the whole prompt. With a tail in its prefix, the
  /// partial chunk at the end of the saved turn is found, too.
  result<lookup_result> lookup(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                               lookup_request request = {}, deadline until = {});

  /// A turn has ended: makes `prompt`, with what the model has said, the session's. A held session holds what the tiers have
  /// of it, and no longer what it held before. `items`: those of the whole prompt. Sends what `lookup` would.
  result<saved_session> save(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                             std::span<const item> items = {}, const request_options& options = {},
                             deadline until = {});

  /// The same for a turn whose partial chunk is stored, too, in all pools and on all ranks: its end is saved with it, and with
  /// `cursors`, one for each pool or none, which lookups return that find this end. Error: `not_found`, if an object of the
  /// partial chunk is missing: the session stays at its last saved turn.
  result<saved_session> save_with_tail(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                                       std::span<const uint64_t> cursors = {},
                                       std::span<const item> items = {}, const request_options& options = {},
                                       deadline until = {});

  /// Keeps the logits of a prompt's last token: an identical prompt needs no prefill (lookup_request::logits). Errors:
  /// `not_found`, if an object of its chunks is missing; `no_space`.
  result<saved_prompts> save_prompt(const prompt_to_save& request, deadline until = {});

  /// A handle for a session that another connection of the trust group has opened, and what it has.
  session adopt_session(const space& in, const session_id& id, const session_point& at,
                        const session_options& options) const;

  /// False: there is no such session, which is no error.
  result<bool> close_session(const session_id& id, deadline until = {});

  /// Those of the trust group.
  result<sessions_status> sessions(deadline until = {});

  /// Of one of them; none: there is no such session.
  result<std::optional<session_status>> session_status_of(const session_id& id, deadline until = {});

  /// Reports how an inference request ended.
  result<void> end_inference(const inference_end& what, deadline until = {});

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

  /// What comes and goes in the tiers of the trust group, behind `from`; at first what is there. Waits until there is
  /// something. Errors: `deadline`: nothing has happened; `gone`: events behind `from` are lost, begin anew.
  result<event_part> subscribe(const event_cursor& from, uint32_t events_max = 1024, deadline until = {});

  /// The leases of the trust group, the oldest first: at most 1,024 with numbers higher than `after`.
  result<leases_status> leases(uint64_t after = 0, deadline until = {});

  /// Counts everything of the trust group again, while it serves, and compares it with what is kept. Each difference is an
  /// error in the daemon. Errors: `busy`, while another check is in progress.
  result<check_result> check(deadline until = {});

  /// Ends a lease for its owner and all readers, which get `gone` from then on. What they may be reading in place stays
  /// until they release it or end. Errors: `not_found`.
  result<revoke_result> revoke(const lease_id& id, deadline until = {});

  /// Keeps what is found of a prompt in its tiers until it is unpinned or the daemon ends, whatever becomes of this
  /// connection. Errors: `no_space` over lease.pin_percent.
  result<pin_result> pin(const prompt_request& request, deadline until = {});

  /// Ends the pin of exactly this prompt.
  result<unpin_result> unpin(const prompt_request& request, deadline until = {});

  /// Removes the objects of all chunks of the prompt. Those that somebody holds stay readable for whoever does, and are
  /// not found again.
  result<clear_result> evict(const prompt_request& request, deadline until = {});

  /// Moves the objects of all chunks of the prompt to host memory or to disk; what somebody holds stays in host memory as
  /// well. Errors: `unsupported` without a disk.
  result<move_result> move(const prompt_request& request, tier_kind to, deadline until = {});

  /// The quotas of the trust group, and what their tenants have.
  result<std::vector<tenant_status>> quotas(deadline until = {});

  /// Changes a quota until the configuration is reloaded with other quotas. Returns what `quotas` does. Errors:
  /// `not_found` listing the names, `bad_request`.
  result<std::vector<tenant_status>> set_quota(const quota_change& what, deadline until = {});

  /// "trace", "debug", "info", "warning" or "error", until the daemon is restarted or reloads its configuration. Returns
  /// the level before. Errors: `bad_request` listing the levels.
  result<std::string> set_log_level(const std::string& level, deadline until = {});

  /// Ends the daemon in order: now, or `when_idle`, once the last client has left; until then it admits no other one.
  /// Returns the number of clients of all trust groups.
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

  /// Receives available answers; waits for at least one if there is none and `until` has not passed. Returns
  /// the number of answers received; see any_ticket::ready. Returns 0 if nothing is in flight, and if `signals` says so when a
  /// signal's handler has interrupted the wait.
  result<uint32_t> poll(deadline until, on_signal signals = on_signal::goes_on);

  /// Asks the daemon to end a request, which is still answered: with `cancelled`, or with its result. False:
  /// the daemon does not know the request any more.
  result<bool> cancel(const detail::any_ticket& under_way, deadline until = {});

  /// The same without waiting: requests cancellation and abandons the request. When its answer arrives, it is
  /// dropped and its resources are released.
  static void give_up(detail::any_ticket& under_way);

  /// A handle for a lease that another connection of the trust group took.
  lease adopt(const lease_id& id) const;

 private:
  struct location {
    uint64_t offset;
    uint64_t bytes;
    uint32_t segment;
  };

  explicit connection(std::shared_ptr<detail::core> core);

  template <class T, class Kind, class Build>
  static result<ticket<T>> submit(const std::shared_ptr<detail::channel>& to, Kind what, Build&& build,
                                  deadline until);
  template <class T, class Kind, class Request>
  result<ticket<T>> submit_about(Kind what, const Request& request, uint32_t region, deadline until,
                                 uint32_t progress_region = 0);
  template <class Table, class T, class Read>
  static auto take(ticket<T>& under_way, deadline until, Read&& read)
      -> result<decltype(read(std::declval<const Table&>()))>;
  template <class T>
  result<T> finish(result<ticket<T>> submitted, deadline until);
  struct turn_end { ///< that is saved
    bool tail = false;
    std::span<const uint64_t> cursors;
  };
  result<saved_session> save_turn(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                                  const turn_end& end, std::span<const item> items,
                                  const request_options& options, deadline until);
  template <class Attempt>
  auto in_session(session& of, std::span<const uint32_t> prompt, uint64_t unchanged,
                  std::span<const item> items, deadline until, Attempt&& send) -> decltype(send(prefix()));
  result<uint32_t> region_id_of(const registered_region* region) const;
  result<uint32_t> region_id_of(const arrivals* progress) const; ///< null: 0
  static result<void> map_segments(detail::channel& in, std::span<const location> locations, deadline until);

  std::shared_ptr<detail::core> core_;
};

/// The second half of load_under_lease, after reading the lease; for callers that separate reading and
/// copying.
result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into);

} // namespace terrace::client
