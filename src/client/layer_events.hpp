// Events of loads into GPU memory. An engine's streams wait for layers with them if they have no stream
// memory operations, or if the engine works with events. layer_ring.hpp costs less and survives the end of
// the GPU's process: prefer it.
//
//   auto events = layer_events::make(*daemon, {.device = uuid, .loads = 3, .layers = layers});
//   auto load = (*events)->begin();                  // a slot
//   request.layers = *load;                          // a load of up to `layers` pools: an event for each
//   auto ticket = daemon->async().load(request);
//   (*events)->wait(*load, i, stream, until);        // before layer i's kernels
//   (*events)->pass(*load, stream);                  // behind the last wait
//   (*events)->end(*load, ticket->wait());
//
// The GPU's process owns the events: it records each one behind the copies of its layer and then says so in a
// shared page. A stream that waits for an unrecorded event would not wait at all, so `wait` waits on the
// processor until the event is recorded, and then makes the stream wait for it.
#pragma once

#include "client/client.hpp"
#include "client/layer_ring.hpp"
#include "client/region.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::client {

struct layer_events_options {
  std::string device;                  ///< the UUID of the GPU
  uint32_t loads = 3;                  ///< number of slots, at least 3
  uint32_t layers = 1;                 ///< most pools per load; (layers + 1) * loads is at most 1,024
  std::string driver = "libcuda.so.1"; ///< file name of the driver library
};

/// Slots for loads, which take turns like those of a ring. A slot is used again only if its load has ended,
/// all of its events were recorded or given up, and the stream has passed its waits. Uses the primary context
/// of the GPU. Streams are the engine's (a CUstream or cudaStream_t), and not the default one.
///
/// Threads: only that of the connection, except that any thread may call `wait`, which returns when the load
/// is recorded or when the connection's thread has called `end`. On the connection's own thread give `wait` a
/// deadline, because nobody else would learn there that a load has failed.
class layer_events {
 public:
  /// Registers the page and opens the events. `daemon` outlives this object and stays where it is. Errors:
  /// `unsupported` without a driver, or if the GPU has no such events; `not_found` if the driver does not
  /// show this GPU; `bad_request`; the daemon's.
  static result<std::unique_ptr<layer_events>> make(connection& daemon, const layer_events_options& options,
                                                    deadline until = {});
  /// Closes the events, and then unregisters the page, which tells the daemon that they are closed.
  ~layer_events();
  layer_events(const layer_events&) = delete;
  layer_events& operator=(const layer_events&) = delete;

  /// Like layer_ring::begin. `gone`: also after a reconnect has registered the page again, because its events
  /// are others now.
  result<layered_load> begin();

  /// Makes the stream go on when the load's pool number `layer` has arrived, or at once if the load has
  /// ended; its answer then says whether the results of later kernels count. Returns when the stream was
  /// told. Errors: `deadline`; the driver's.
  result<void> wait(const layered_load& load, uint32_t layer, void* stream, deadline until = {}) const;

  /// Call it behind the last wait for the load's events in the stream.
  result<void> pass(const layered_load& load, void* stream);
  /// Call it for a load whose events no stream waits for.
  void pass(const layered_load& load);

  /// Call it when the load has been answered: waiting threads return. Like layer_ring::end.
  template <class T>
  const result<T>& end(const layered_load& load, const result<T>& answer) {
    end(load, answer ? errc::ok : answer.error().code);
    return answer;
  }
  void end(const layered_load& load, errc answer);

  /// Call it after `gone`: closes the events, then registers and opens new ones. Precondition: `pass` was
  /// called for every load that a stream waits for, and no `wait` is in progress. Errors: `busy` if a stream
  /// has not passed its waits. If the GPU's process ended between recording an event and writing its bytes,
  /// the stream never will, and no call can help it: end this process (docs/gpu.md).
  result<void> restart(deadline until = {});
  /// Closes the events and waits until the daemon has confirmed that the page is unregistered. Only `restart`
  /// may follow.
  result<void> close(deadline until = {});

  uint32_t layers() const;

 private:
  struct parts;
  explicit layer_events(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace terrace::client
