// Python's terrace.LayerRing: layers of loads into memory of a device, for which streams of a GPU wait.
#pragma once

#include "client/engine_device.hpp"
#include "client/layer_ring.hpp"
#include "connection.hpp"
#include "regions.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>

namespace terrace::python {

/// The ring and the objects that it uses. Used with the GIL, and inside of turns.
struct ring_parts {
  std::shared_ptr<shared_connection> in;
  std::shared_ptr<client::region> memory;
  nb::object region; ///< region of the memory
  std::string device;
  std::unique_ptr<client::layer_ring> ring;
  std::unique_ptr<client::engine_device> gpu; ///< opened for the first stream, or before; destroyed first

  const client::engine_device& opened_gpu();
  ~ring_parts();
};

/// Python's terrace.LayeredLoad. Keeps the ring.
struct load_slot {
  std::shared_ptr<ring_parts> of;
  client::layered_load load;

  bool ended = false; ///< its request has ended
  void end(errc answer) {
    if (!std::exchange(ended, true))
      of->ring->end(load, answer);
  }
};

void bind_layers(nb::module_& in);

} // namespace terrace::python
