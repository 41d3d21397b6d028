#include "leases.hpp"

#include "arguments.hpp"
#include "base/copy_memory.hpp"
#include "exported_bytes.hpp"
#include "gil.hpp"
#include "memory_argument.hpp"

namespace terrace::python {

lease_argument::lease_argument(nb::handle given) {
  if (nb::isinstance<nb::bytes>(given)) {
    id = id_of<lease_id>(nb::borrow<nb::bytes>(given));
    return;
  }
  if (!nb::isinstance<lease_handle>(given))
    throw nb::type_error("expected a terrace.Lease, or the 16 bytes of a lease's id");
  held = nb::inst_ptr<lease_handle>(given)->held;
  if (!held)
    refuse("expected a lease that is held, got one that was released");
  id = held->id();
}

uint64_t located_handle::copy_into(nb::handle given) const {
  destinations into(given);
  std::vector<std::span<const uint8_t>> from;
  for (nb::handle object : objects)
    from.emplace_back(nb::inst_ptr<exported_bytes>(object)->bytes);
  gil_released others_run;
  return value_of(client::copy_objects(from, into.bytes));
}

// ---- reservations ----

reservation_handle::reservation_handle(std::shared_ptr<held_reservation> held) : held_(std::move(held)) {
  for (auto object : held_->reserved.objects())
    objects_.append(nb::cast(exported_bytes{object, true, held_}));
}

std::shared_ptr<held_reservation> reservation_handle::take() {
  if (!held_)
    refuse("expected a reservation that is open, got one that was committed or aborted");
  for (nb::handle object : objects_)
    if (nb::inst_ptr<exported_bytes>(object)->exports != 0) {
      PyErr_SetString(PyExc_BufferError, "a view of the reservation's memory exists: release it first");
      throw nb::python_error();
    }
  // A Buffer that Python keeps has no bytes any more.
  for (nb::handle object : objects_)
    *nb::inst_ptr<exported_bytes>(object) = {};
  objects_ = nb::list();
  return std::move(held_);
}

void reservation_handle::abort() {
  if (held_)
    take();
}

void reservation_handle::write(nb::handle sources) {
  if (!held_)
    refuse("expected a reservation that is open, got one that was committed or aborted");
  if (nb::len(sources) != nb::len(objects_))
    refuse("expected one source an object (" + std::to_string(nb::len(objects_)) + "), got " +
           std::to_string(nb::len(sources)));
  std::vector<memory_argument> from;
  std::vector<std::span<uint8_t>> to;
  size_t i = 0;
  for (nb::handle source : sources) {
    auto space = nb::inst_ptr<exported_bytes>(objects_[i++])->bytes;
    if (space.empty())
      continue; // the object is already present
    from.emplace_back(source, memory_argument::access::reading);
    to.push_back(space);
    if (from.back().bytes().size() != space.size())
      refuse("expected " + std::to_string(space.size()) + " bytes for object " + std::to_string(i - 1) +
             ", got " + std::to_string(from.back().bytes().size()));
  }
  gil_released others_run;
  for (size_t k = 0; k < to.size(); ++k)
    copy_memory(to[k].data(), from[k].bytes().data(), to[k].size());
}

// ---- Python's classes ----

void bind_leases(nb::module_& in) {
  nb::class_<lease_handle>(in, "Lease")
      .def_prop_ro("id", [](const lease_handle& self) { return to_bytes(self.id.bytes); })
      .def_prop_ro("released", [](const lease_handle& self) { return !self.held; })
      .def("release", [](lease_handle& self) { self.held.reset(); })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](lease_handle& self, const nb::args&) { self.held.reset(); })
      .def("__repr__", [](const lease_handle& self) {
        return std::string("<terrace.Lease, ") + (self.held ? "held>" : "released>");
      });

  nb::class_<located_handle>(in, "Located")
      .def_ro("objects", &located_handle::objects)
      .def_ro("first_token", &located_handle::first_token)
      .def_ro("missing", &located_handle::missing)
      .def("copy_into", &located_handle::copy_into, nb::arg("destinations"))
      .def("__len__", [](const located_handle& self) { return nb::len(self.objects); })
      .def("__getitem__",
           [](const located_handle& self, nb::handle i) { return self.objects.attr("__getitem__")(i); })
      .def("__iter__", [](const located_handle& self) { return nb::iter(self.objects); });

  nb::class_<reservation_handle>(in, "Reservation")
      .def_prop_ro("objects", &reservation_handle::objects)
      .def("write", &reservation_handle::write, nb::arg("sources"))
      .def_prop_ro("open", &reservation_handle::open)
      .def("abort", &reservation_handle::abort)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](reservation_handle& self, const nb::args&) { self.abort(); });
}

} // namespace terrace::python
