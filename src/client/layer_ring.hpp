// Generations of loads into a device's memory, with which an engine's streams wait for layers without a
// processor.
//
//   auto memory = region::create("generations", layer_ring::bytes_for(3, layers));
//   auto page = daemon->register_generations(*memory, gpu_uuid);
//   std::unique_ptr<layer_ring> ring = *layer_ring::make(*memory, *page, {.loads = 3, .layers = layers});
//   auto load = ring->begin();                      // a slot of the ring
//   request.layers = *load;                         // a load of up to `layers` pools: a counter for each
//   auto ticket = daemon->async().load(request);
//   cuStreamWaitValue32(stream, page_on_gpu + load->layer(i).offset, load->value, CU_STREAM_WAIT_VALUE_GEQ); // before layer i
//   cuStreamWriteValue32(stream, page_on_gpu + load->passed().offset, load->value, 0);                       // behind the last wait
//   ring->end(*load, ticket->wait());
//
// `page_on_gpu` is the address of the memory on the GPU: the engine registers it in its own process
// (cuMemHostRegister, cuMemHostGetDevicePointer).
#pragma once

#include "base/error.hpp"
#include "client/handles.hpp"
#include "client/region.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace terrace::client {

struct layer_ring_options {
  uint64_t offset = 0; ///< offset in the memory, a multiple of 4
  uint32_t loads = 3;  ///< number of slots, at least 3: one is loading, one is in use, and one is free
  uint32_t layers = 1; ///< most pools per load
};

/// Slots for loads, which take turns. A slot is used again only if its load has ended, its counters have been reached, and its
/// waiters have passed: an older value never counts as a newer one, and no counter goes back under a waiter.
///
/// Threads: one, that of the connection, but `arrived` and `wait` on any.
class layer_ring {
 public:
  static constexpr uint32_t loads_min = 3;
  static constexpr uint64_t bytes_max = 256 << 10; ///< limit of a page

  static uint64_t bytes_for(uint32_t loads, uint32_t layers) {
    return uint64_t{loads} * (layers + uint64_t{1}) * sizeof(uint32_t);
  }

  /// Lays the ring out in `memory`, which is registered as `at` by `register_generations`; both outlive the
  /// ring. Sets the counters to 0. Precondition: nobody waits for them. Errors: `bad_request`.
  static result<std::unique_ptr<layer_ring>> make(const region& memory, const registered_region& at,
                                                  layer_ring_options options);
  layer_ring(const layer_ring&) = delete;
  layer_ring& operator=(const layer_ring&) = delete;

  /// Returns the next slot. Error: `busy` if it cannot be used again yet; the text names the slot and what it
  /// waits for.
  result<layered_load> begin();

  /// Call it when the load has been answered: raises the counters that the load has not reached, so that no
  /// stream waits forever. If the load failed or delivered less than requested, everything computed behind
  /// the waits is worthless. After `gone` this ring is not used again before `restart`, because the device
  /// may write its counters late.
  template <class T>
  const result<T>& end(const layered_load& load, const result<T>& answer) {
    end(load, answer ? errc::ok : answer.error().code);
    return answer;
  }
  void end(const layered_load& load, errc answer);

  /// Call it for a load whose layers no stream waits for: it counts as if a stream had passed.
  void pass(const layered_load& load);

  /// Call it after the device's regions were unregistered or the connection was made again. Precondition: no
  /// stream waits.
  void restart();

  /// True if the layer has arrived or the load has ended.
  bool arrived(const layered_load& load, uint32_t layer) const;
  /// Waits on a processor until the layer has arrived or the load has ended. False: `until` has passed.
  bool wait(const layered_load& load, uint32_t layer, deadline until = {}) const;

  uint32_t layers() const { return options_.layers; }
  const registered_region& at() const { return *at_; }

 private:
  friend class connection;
  friend class async_requests;
  friend struct layered_load;

  struct slot {
    uint32_t value = 0;
    bool begun = false; ///< begun and not ended
    std::shared_ptr<detail::channel>
        asked; ///< channel of a load in flight, also if nobody waits for its answer any more
    uint64_t request = 0;
  };

  layer_ring(uint32_t* counters, const registered_region& at, layer_ring_options options)
      : counters_(counters), at_(&at), options_(options), slots_(options.loads) {}

  uint32_t index_of(const layered_load& load, uint32_t layer) const {
    return load.slot * (options_.layers + 1) + layer;
  }
  uint64_t offset_of(uint32_t index) const { return options_.offset + uint64_t{index} * sizeof(uint32_t); }
  bool reached(uint32_t index, uint32_t value) const;
  void raise(uint32_t index, uint32_t value);
  result<void> reusable(uint32_t number) const;
  /// The load was sent.
  void sent(const layered_load& load, std::shared_ptr<detail::channel> to, uint64_t request);

  uint32_t* counters_; ///< by slot: one counter for each layer, and one that the waiters raise
  const registered_region* at_;
  layer_ring_options options_;
  std::vector<slot> slots_;
  uint32_t next_ = 0;
  bool lost_ = false; ///< the device may write late
};

} // namespace terrace::client
