// Events of loads into memory of a GPU: what an engine's streams wait for layers by if they have no stream memory operations, or if
// the engine works with events. layer_ring.hpp costs less, and survives the end of the GPU's process: prefer it.
//
//   auto events = layer_events::make(*daemon, {.device = uuid, .loads = 3, .layers = layers});
//   auto load = (*events)->begin();                  // a slot
//   request.layers = *load;                          // a load of so many pools: an event for each
//   auto ticket = daemon->submit_load(request);
//   (*events)->wait(*load, i, stream, until);        // before layer i's kernels
//   (*events)->pass(*load, stream);                  // behind the last wait
//   (*events)->end(*load, daemon->wait(*ticket));
//
// The events are those of the GPU's process, which records one behind the copies of its layer and then says so in a shared page. To
// wait for an event that was not recorded is to wait for nothing, so `wait` waits on the processor until it was, and then has the
// stream wait for it.
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
  uint32_t loads = 3;                  ///< slots, at least 3
  uint32_t layers = 1;                 ///< most pools of a load; (layers + 1) * loads is at most 1,024
  std::string driver = "libcuda.so.1"; ///< the library
};

/// Slots for loads, which take turns, as those of a ring. A slot is used again only if its load has ended, all of its events were
/// recorded or given up, and the stream has passed its waits. Uses the primary context of the GPU. Streams are the engine's (a CUstream
/// or cudaStream_t), and not the default one.
///
/// Threads: one, that of the connection, but `wait` on any: it returns when the load is recorded, or when that thread has called `end`.
/// On the connection's own thread give it a time, because then nobody hears of a load that has failed.
class layer_events {
 public:
  /// Registers the page and opens the events. `daemon` outlives this and stays where it is. Errors: `unsupported` without a driver, or if the GPU has no such events; `not_found`, if
  /// the driver does not show this GPU; `bad_request`; the daemon's.
  static result<std::unique_ptr<layer_events>> make(connection& daemon, const layer_events_options& options,
                                                    deadline until = {});
  /// Closes the events, and then unregisters the page, which tells the daemon that they are closed.
  ~layer_events();
  layer_events(const layer_events&) = delete;
  layer_events& operator=(const layer_events&) = delete;

  /// As in a ring. `gone`: also after the page was registered again by a reconnect; its events are others now.
  result<layered_load> begin();

  /// The stream goes on when the load's `layer`th pool has arrived; at once if the load has ended, whose answer says whether what is
  /// computed behind counts. Returns when the stream was told. Errors: `deadline`; the driver's.
  result<void> wait(const layered_load& load, uint32_t layer, void* stream, deadline until = {}) const;

  /// Every wait for the load's events is before this in the stream.
  result<void> pass(const layered_load& load, void* stream);
  /// For a load whose events no stream waits for.
  void pass(const layered_load& load);

  /// The load has been answered: who waits returns. As in a ring.
  template <class T>
  const result<T>& end(const layered_load& load, const result<T>& answer) {
    end(load, answer ? errc::ok : answer.error().code);
    return answer;
  }
  void end(const layered_load& load, errc answer);

  /// After `gone`: closes the events, and registers and opens new ones. `pass` was called for every load that a stream waits for, and no
  /// `wait` is in progress. Errors: `busy`, if a stream has not passed its waits. If the
  /// GPU's process has ended between a record and its bytes, it never will, and no call can help it: end this process (docs/gpu.md).
  result<void> restart(deadline until = {});
  /// Closes the events and waits until the daemon has answered that the page is unregistered. Only `restart` may follow.
  result<void> close(deadline until = {});

  uint32_t layers() const;

 private:
  struct parts;
  explicit layer_events(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace terrace::client
