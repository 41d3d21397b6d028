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
#include "client/admin.hpp"
#include "client/arrivals.hpp"
#include "client/bell.hpp"
#include "client/handles.hpp"
#include "client/layer_ring.hpp"
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
  /// A remote store has these further chunks, which had not come in time for the lease. Another lookup goes on with them.
  uint32_t pending_chunks = 0;
  /// Of the found ones: those that came from a remote store to host memory for this lease.
  uint32_t brought_chunks = 0;
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

/// Requests with any number in flight; answers may arrive in any order. Each returns a ticket, whose `wait` has the
/// answer.
///
/// Submitting waits only while the daemon's credits are exhausted, until `until` at most; the remaining time
/// is sent to the daemon as the request's deadline.
class async_requests {
 public:
  result<ticket<lookup_result>> lookup(const lookup_request& request, deadline until = {});
  result<ticket<lookup_result>> await_lookup(const lookup_id& id, deadline until = {},
                                             const request_options& options = {});
  result<ticket<located_objects>> read_lease(const lease_id& id, chunk_range range = {}, deadline until = {},
                                             std::span<const uint8_t> pools = {},
                                             earlier_places earlier = earlier_places::kept,
                                             const request_options& options = {});
  result<ticket<load_result>> load(const load_request& request, deadline until = {});
  result<ticket<prefetch_result>> prefetch(const prefetch_request& request, deadline until = {});
  result<ticket<store_result>> store(const store_request& request, deadline until = {});
  /// Others may follow the name until this is answered, which it is once all of the chunks are present. Cancel it if they will
  /// not be stored.
  result<ticket<announced_chunks>> announce(const announcement& request, deadline until = {});
  result<ticket<announced_chunks>> follow(const lookup_id& name, uint32_t chunks = 0, deadline until = {},
                                          const request_options& options = {});
  result<ticket<reservation>> reserve(const reserve_request& request, deadline until = {});
  result<ticket<store_result>> commit(reservation written, deadline until = {},
                                      const request_options& options = {});
  /// Reports how an inference request ended. It has no answer to wait for, and never waits; on a connection that is lost
  /// it does nothing.
  void end_inference(const inference_end& ended);

 private:
  friend class connection;
  friend class session;
  explicit async_requests(std::shared_ptr<detail::core> core) : core_(std::move(core)) {}

  template <class T, class Kind, class Build>
  static result<ticket<T>> submit(const std::shared_ptr<detail::channel>& to, Kind kind, Build&& build,
                                  deadline until);
  template <class T, class Kind, class Request>
  result<ticket<T>> submit_about(Kind kind, const Request& request, uint32_t region, deadline until,
                                 uint32_t progress_region = 0);
  result<uint32_t> region_id_of(const registered_region* region) const;
  result<uint32_t> region_id_of(const arrivals* progress) const; ///< `progress` null: returns 0.

  std::shared_ptr<detail::core> core_;
};

// The answers that a ticket may wait for.
template <>
result<lookup_result> ticket<lookup_result>::wait(deadline until);
template <>
result<located_objects> ticket<located_objects>::wait(deadline until);
template <>
result<load_result> ticket<load_result>::wait(deadline until);
template <>
result<prefetch_result> ticket<prefetch_result>::wait(deadline until);
template <>
result<store_result> ticket<store_result>::wait(deadline until);
template <>
result<reservation> ticket<reservation>::wait(deadline until);
template <>
result<announced_chunks> ticket<announced_chunks>::wait(deadline until);

namespace detail {
/// Ends the connection with its owner; what else shares the core then fails with `gone`.
class core_owner {
 public:
  explicit core_owner(std::shared_ptr<core> owned) : core_(std::move(owned)) {}
  core_owner(core_owner&&) noexcept = default;
  core_owner& operator=(core_owner&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~core_owner();

  core* operator->() const { return core_.get(); }
  const std::shared_ptr<core>& shared() const { return core_; }

 private:
  std::shared_ptr<core> core_; ///< null: moved from
};
} // namespace detail

/// The common path: connect, open a space, look up, load, store. Further calls stand on the handles that these return,
/// in `async` and in `admin`.
class connection {
 public:
  /// Connects and performs the handshake.
  static result<connection> connect(connect_options options, deadline until = {});

  /// Performs the handshake on a connected stream socket. `reconnect` works if `options.path` is set.
  static result<connection> over(unique_fd socket, connect_options options, deadline until = {});

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
  // ---- requests that wait for their answer ----

  result<lookup_result> lookup(const lookup_request& request, deadline until = {});

  /// Returns the answer to another connection's lookup, as soon as it is available, also if that lookup
  /// starts after this call. Its lease ends when all holders have released it. Errors: `gone` if the lookup
  /// had no answer or its lease has ended, `cancelled`, and `deadline`, also for a lookup that never starts.
  result<lookup_result> await_lookup(const lookup_id& id, deadline until = {},
                                     const request_options& options = {});

  /// Waits until the first `chunks` (0: all) of what another connection has announced by this name are present, or no more of
  /// them will come; also if it is announced after this call. Errors: `deadline`.
  result<announced_chunks> follow(const lookup_id& name, uint32_t chunks = 0, deadline until = {},
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

  /// Keeps the logits of a prompt's last token, so that an identical prompt needs no prefill
  /// (lookup_request::logits). Errors: `not_found` if an object of its chunks is missing; `no_space`.
  result<saved_prompts> save_prompt(const prompt_to_save& request, deadline until = {});

  /// Returns a handle for a session that another connection of the trust group has opened. `at`: what the
  /// session has.
  session adopt_session(const space& where, const session_id& id, const session_point& at,
                        const session_options& options) const;

  /// Reports how an inference request ended.
  result<void> end_inference(const inference_end& ended, deadline until = {});

  // ---- further calls ----

  /// Returns the object that sends these requests with any number in flight.
  async_requests async();
  /// Returns the object with the calls of operators.
  client::admin admin() const;

  /// Receives available answers; if there is none, waits for at least one until `until`. Returns the number
  /// of answers received; see any_ticket::ready. Returns 0 if nothing is in flight, and if `signals` says so
  /// when a signal handler has interrupted the wait.
  result<uint32_t> poll(deadline until, on_signal signals = on_signal::goes_on);

  /// Returns a handle for a lease that another connection of the trust group took.
  lease adopt(const lease_id& id) const;

 private:
  explicit connection(std::shared_ptr<detail::core> core) : core_(std::move(core)) {}
  detail::core_owner core_;
};

/// The second half of load_under_lease, after reading the lease; for callers that read and copy separately.
result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into);

} // namespace terrace::client
