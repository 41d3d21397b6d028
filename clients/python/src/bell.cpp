#include "bell.hpp"

#include "arguments.hpp"
#include "gil.hpp"

#include <nanobind/stl/unique_ptr.h>

namespace terrace::python {

result<const client::engine_device*> bell_handle::open(const std::string& device) {
  std::lock_guard mine(guard_);
  auto& known = gpus_[device];
  if (!known) {
    auto opened = client::engine_device::open({.device = device});
    if (!opened) {
      gpus_.erase(device);
      return tl::unexpected(std::move(opened.error()));
    }
    known = std::move(*opened);
  }
  return known.get();
}

result<void> bell_handle::ring_after(uintptr_t stream, const std::string& device) {
  if (stream == 0)
    return fail(errc::bad_request, "expected a stream of the engine's own, got the default one");
  auto gpu = open(device);
  if (!gpu)
    return tl::unexpected(std::move(gpu.error()));
  return (*gpu)->ring(reinterpret_cast<void*>(stream), bell_);
}

void bind_bell(nb::module_& in, connection_class& to) {
  nb::class_<bell_handle>(in, "Bell")
      .def("ring", &bell_handle::ring)
      .def(
          "ring_after",
          [](bell_handle& self, uintptr_t stream, const std::string& device) {
            auto queued = [&] {
              gil_released others_run;
              return self.ring_after(stream, device);
            }();
            value_of(std::move(queued));
          },
          nb::arg("stream"), nb::arg("device"))
      .def(
          "open",
          [](bell_handle& self, const std::string& device) {
            auto opened = [&] {
              gil_released others_run;
              return self.open(device);
            }();
            value_of(std::move(opened));
          },
          nb::arg("device"))
      .def("fileno", &bell_handle::descriptor);
  to.def(
      "bell",
      [](connection_handle& self, const timeout& limit) {
        auto until = deadline_of(limit);
        auto rings =
            value_of(self.in->use(until, [&](client::connection& daemon) { return daemon.bell(until); }));
        return std::make_unique<bell_handle>(std::move(rings));
      },
      nb::kw_only(), nb::arg("timeout") = nb::none());
}

} // namespace terrace::python
