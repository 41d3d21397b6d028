#include "layers.hpp"

#include "arguments.hpp"
#include "gil.hpp"

#include <nanobind/stl/shared_ptr.h>

namespace terrace::python {

ring_parts::~ring_parts() {
  // Unpinning the page waits for all streams, and whoever lets them go may need the GIL.
  gil_released others_run;
  gpu.reset();
}

const client::engine_device& ring_parts::opened_gpu() {
  if (!gpu) {
    auto opened = value_of(client::engine_device::open({.device = device}));
    value_of(opened->attach(*memory));
    gpu = std::move(opened);
  }
  return *gpu;
}

namespace {

/// Python's terrace.LayerRing.
struct ring_handle {
  std::shared_ptr<ring_parts> parts;
};

uint32_t layer_of(const load_slot& slot, uint32_t layer) {
  if (layer >= slot.of->ring->layers())
    refuse("expected a layer below " + std::to_string(slot.of->ring->layers()) + ", got " +
           std::to_string(layer));
  return layer;
}

void* stream_of(uintptr_t stream) {
  if (stream == 0)
    refuse("expected a stream of the engine's own, got the default one");
  return reinterpret_cast<void*>(stream);
}

/// Calls without the GIL, because a full stream waits for room.
template <class Call>
void queue(load_slot& slot, uintptr_t stream, Call&& call) {
  void* on = stream_of(stream);
  const client::engine_device& gpu = slot.of->opened_gpu();
  gil_released others_run;
  value_of(call(gpu, on));
}

std::shared_ptr<ring_parts> make_ring(const shared_memory& memory, nb::object region, std::string device,
                                      const client::layer_ring_options& options) {
  if (!nb::isinstance<region_handle>(region))
    throw nb::type_error("expected the region that the memory is registered as");
  const auto& at = nb::cast<const region_handle&>(region);
  auto made = std::make_shared<ring_parts>();
  made->in = at.in();
  made->memory = memory.region;
  made->ring = value_of(client::layer_ring::make(*memory.region, at.region(), options));
  made->device = std::move(device);
  made->region = std::move(region);
  return made;
}

} // namespace

void bind_layers(nb::module_& in) {
  nb::class_<load_slot>(in, "LayeredLoad")
      .def(
          "wait_on",
          [](load_slot& self, uintptr_t stream, uint32_t layer) {
            auto counter = self.load.layer(layer_of(self, layer));
            queue(self, stream, [&](const auto& gpu, void* on) { return gpu.wait(on, counter); });
          },
          nb::arg("stream"), nb::arg("layer"))
      .def(
          "pass_on",
          [](load_slot& self, uintptr_t stream) {
            queue(self, stream, [&](const auto& gpu, void* on) { return gpu.write(on, self.load.passed()); });
          },
          nb::arg("stream"))
      .def("pass_now", [](load_slot& self) { self.of->ring->pass(self.load); })
      .def(
          "arrived",
          [](const load_slot& self, uint32_t layer) {
            return self.of->ring->arrived(self.load, layer_of(self, layer));
          },
          nb::arg("layer"))
      .def(
          "wait",
          [](const load_slot& self, uint32_t layer, const timeout& limit) {
            uint32_t wanted = layer_of(self, layer);
            auto until = deadline_of(limit);
            gil_released others_run;
            return self.of->ring->wait(self.load, wanted, until);
          },
          nb::arg("layer"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("end", [](load_slot& self) { self.end(errc::cancelled); });
  nb::class_<ring_handle>(in, "LayerRing")
      .def(
          "__init__",
          [](ring_handle* self, const shared_memory& memory, nb::object region, std::string device,
             uint32_t layers, uint32_t loads, uint64_t offset) {
            auto made = make_ring(memory, std::move(region), std::move(device),
                                  {.offset = offset, .loads = loads, .layers = layers});
            new (self) ring_handle{std::move(made)};
          },
          nb::arg("memory"), nb::arg("region"), nb::arg("device"), nb::kw_only(), nb::arg("layers"),
          nb::arg("loads") = 3, nb::arg("offset") = 0)
      .def(
          "begin",
          [](ring_handle& self, const timeout& limit) {
            auto& parts = *self.parts;
            auto load = value_of(parts.in->use(deadline_of(limit), [&](client::connection&) {
              nb::gil_scoped_acquire python; // no other thread ends one meanwhile
              return parts.ring->begin();
            }));
            return std::make_shared<load_slot>(load_slot{self.parts, load});
          },
          nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("open", [](ring_handle& self) { (void) self.parts->opened_gpu(); })
      .def_static(
          "bytes_for",
          [](uint32_t loads, uint32_t layers) { return client::layer_ring::bytes_for(loads, layers); },
          nb::arg("loads"), nb::arg("layers"));
}

} // namespace terrace::python
