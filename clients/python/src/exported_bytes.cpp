#include "exported_bytes.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

namespace terrace::python {

namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* exported = nb::inst_ptr<exported_bytes>(self);
  auto size = static_cast<Py_ssize_t>(exported->bytes.size());
  if (PyBuffer_FillInfo(view, self, exported->bytes.data(), size, exported->writable ? 0 : 1, flags) != 0)
    return -1;
  ++exported->exports;
  return 0;
}

void release_buffer(PyObject* self, Py_buffer*) { --nb::inst_ptr<exported_bytes>(self)->exports; }

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                       {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                       {0, nullptr}};

nb::object array_of(nb::handle self) {
  auto& exported = *nb::inst_ptr<exported_bytes>(self);
  // The memoryview in between makes what DLPack holds count as an export.
  nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
  if (!view.is_valid())
    throw nb::python_error();
  size_t shape[1] = {exported.bytes.size()};
  if (exported.writable)
    return nb::cast(nb::ndarray<nb::array_api, uint8_t>(exported.bytes.data(), 1, shape, view));
  return nb::cast(nb::ndarray<nb::array_api, const uint8_t>(exported.bytes.data(), 1, shape, view));
}

} // namespace

void bind_exported_bytes(nb::module_& in) {
  nb::class_<exported_bytes>(in, "Buffer", nb::type_slots(slots))
      .def("__len__", [](const exported_bytes& self) { return self.bytes.size(); })
      .def_prop_ro("nbytes", [](const exported_bytes& self) { return self.bytes.size(); })
      .def_prop_ro("readonly", [](const exported_bytes& self) { return !self.writable; })
      .def("__dlpack__",
           [](nb::handle self, nb::kwargs how) { return array_of(self).attr("__dlpack__")(**how); })
      .def("__dlpack_device__", [](const exported_bytes&) { return nb::make_tuple(1, 0); })
      .def("__repr__", [](const exported_bytes& self) {
        return "<terrace.Buffer of " + std::to_string(self.bytes.size()) + " bytes" +
               (self.writable ? ">" : ", read-only>");
      });
}

} // namespace terrace::python
