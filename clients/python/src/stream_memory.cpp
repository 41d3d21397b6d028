#include "stream_memory.hpp"

#include "arguments.hpp"
#include "client/device_memory.hpp"
#include "client/engine_device.hpp"
#include "gil.hpp"
#include "regions.hpp"

#include <memory>
#include <string>
#include <utility>

namespace terrace::python {

namespace {

/// Python's terrace.DeviceMemory. It is freed without the GIL: the driver may wait for streams, and whoever
/// lets them go may need the GIL.
struct device_memory_handle {
  std::unique_ptr<client::device_memory> memory;

  explicit device_memory_handle(std::unique_ptr<client::device_memory> made) : memory(std::move(made)) {}
  ~device_memory_handle() {
    gil_released others_run;
    memory.reset();
  }
};

nb::dict array_of(const device_memory_handle& self) {
  nb::dict described;
  described["shape"] = nb::make_tuple(self.memory->bytes());
  described["typestr"] = "|u1";
  described["data"] = nb::make_tuple(self.memory->address(), false);
  described["version"] = 3;
  return described;
}

/// Python's terrace.StoreCounter. Keeps its page and the region of it.
struct store_counter {
  std::shared_ptr<client::region> page;
  nb::object region;
  std::unique_ptr<client::engine_device> gpu;
  client::layer_counter last; ///< its value is the one queued last

  ~store_counter() {
    gil_released others_run; // unpinning the page waits for all streams
    gpu.reset();
  }
};

void make_counter(store_counter* self, const shared_memory& memory, nb::object region,
                  const std::string& device, uint64_t offset) {
  if (!nb::isinstance<region_handle>(region))
    throw nb::type_error("expected the region that the memory is registered as");
  uint64_t size = memory.region->size();
  if (offset % sizeof(uint32_t) != 0 || size < sizeof(uint32_t) || offset > size - sizeof(uint32_t))
    refuse("expected a counter of 4 bytes, aligned and inside of the memory, got one at " +
           std::to_string(offset) + " of " + std::to_string(size) + " bytes");
  auto gpu = value_of(client::engine_device::open({.device = device}));
  value_of(gpu->attach(*memory.region));
  new (self) store_counter{memory.region, std::move(region), std::move(gpu), {.offset = offset, .value = 0}};
}

/// Returns the generation that a store waits for, in the form of `after`.
nb::tuple raise_after(store_counter& self, uintptr_t stream) {
  if (stream == 0)
    refuse("expected a stream of the engine's own, got the default one");
  auto next = self.last;
  ++next.value;
  auto queued = [&] {
    gil_released others_run; // a full stream waits for room
    return self.gpu->write(reinterpret_cast<void*>(stream), next);
  }();
  value_of(std::move(queued));
  self.last = next;
  return nb::make_tuple(self.region, next.offset, next.value);
}

} // namespace

void bind_stream_memory(nb::module_& in) {
  nb::class_<device_memory_handle>(in, "DeviceMemory")
      .def(
          "__init__",
          [](device_memory_handle* self, uint64_t nbytes, const std::string& device) {
            auto made = [&] {
              gil_released others_run;
              return client::device_memory::make({.device = device, .bytes = nbytes});
            }();
            new (self) device_memory_handle(value_of(std::move(made)));
          },
          nb::arg("nbytes"), nb::arg("device"))
      .def_prop_ro("address", [](const device_memory_handle& self) { return self.memory->address(); })
      .def_prop_ro("nbytes", [](const device_memory_handle& self) { return self.memory->bytes(); })
      .def_prop_ro("__cuda_array_interface__", array_of)
      .def("__repr__", [](const device_memory_handle& self) {
        return "<terrace.DeviceMemory of " + std::to_string(self.memory->bytes()) + " bytes>";
      });
  nb::class_<store_counter>(in, "StoreCounter")
      .def("__init__", make_counter, nb::arg("memory"), nb::arg("region"), nb::arg("device"), nb::kw_only(),
           nb::arg("offset") = 0)
      .def("raise_after", raise_after, nb::arg("stream"));
}

} // namespace terrace::python
