#include "regions.hpp"

#include "arguments.hpp"
#include "memory_argument.hpp"
#include "prefix.hpp"

namespace terrace::python {

client::run region_handle::run_of(nb::handle memory) const {
  auto bytes = memory_argument(memory, memory_argument::access::reading).bytes();
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (base_ == 0)
    refuse("expected a region that was registered by its memory, got one that was registered by a "
           "descriptor: name "
           "offsets instead");
  if (address < base_ || address - base_ > region_.bytes() ||
      bytes.size() > region_.bytes() - (address - base_))
    refuse("expected memory inside of the region, got some that lies elsewhere");
  return {.offset = address - base_, .bytes = bytes.size(), .stride = bytes.size(), .count = 1};
}

void region_handle::unregister() {
  if (region_)
    in_->give_back(std::move(region_));
  keeps_.reset();
}

std::vector<client::run> runs_of(const region_handle& region, nb::handle list) {
  if (nb::isinstance<row_runs>(list))
    return nb::cast<const row_runs&>(list).runs;
  std::vector<client::run> runs;
  for (nb::handle one : list) {
    if (!nb::isinstance<nb::tuple>(one)) {
      runs.push_back(region.run_of(one));
      continue;
    }
    size_t members = nb::len(one);
    if (members != 2 && members != 4)
      refuse("expected a run of (offset, bytes) or (offset, bytes, stride, count), got " +
             std::to_string(members) + " members");
    client::run run{.offset = part_of<uint64_t>(one[0], "a number of bytes"),
                    .bytes = part_of<uint64_t>(one[1], "a number of bytes")};
    run.stride = members == 4 ? part_of<uint64_t>(one[2], "a number of bytes") : run.bytes;
    run.count = members == 4 ? part_of<uint64_t>(one[3], "a number of bytes") : 1;
    runs.push_back(run);
  }
  return runs;
}

void bind_regions(nb::module_& in) {
  nb::class_<row_runs>(in, "Rows")
      .def(
          "__init__",
          [](row_runs* self, nb::handle rows, uint64_t row_bytes, uint64_t offset) {
            auto numbers = read_numbers(rows, "rows");
            new (self) row_runs;
            self->runs.reserve(numbers.size());
            for (uint64_t row : numbers)
              self->runs.push_back(
                  {.offset = offset + row * row_bytes, .bytes = row_bytes, .stride = row_bytes, .count = 1});
          },
          nb::arg("rows"), nb::arg("row_bytes"), nb::kw_only(), nb::arg("offset") = 0)
      .def("__len__", [](const row_runs& self) { return self.runs.size(); })
      .def("__repr__",
           [](const row_runs& self) { return "<terrace.Rows: " + std::to_string(self.runs.size()) + ">"; });

  nb::class_<shared_memory, exported_bytes>(in, "Memory")
      .def(
          "__init__",
          [](shared_memory* self, uint64_t nbytes, const std::string& name) {
            auto made =
                std::make_shared<client::region>(value_of(client::region::create(name.c_str(), nbytes)));
            new (self) shared_memory{{made->bytes(), true, nullptr}, made};
          },
          nb::arg("nbytes"), nb::kw_only(), nb::arg("name") = "terrace-python")
      .def("fileno", [](const shared_memory& self) { return self.region->descriptor(); })
      .def("__repr__", [](const shared_memory& self) {
        return "<terrace.Memory of " + std::to_string(self.bytes.size()) + " bytes>";
      });

  nb::class_<region_handle>(in, "Region")
      .def_prop_ro("nbytes", [](const region_handle& self) { return self.region().bytes(); })
      .def_prop_ro("mapped", [](const region_handle& self) { return self.region().mapped(); })
      .def_prop_ro("registered", &region_handle::registered)
      .def(
          "run_of",
          [](const region_handle& self, nb::handle memory) {
            auto run = self.run_of(memory);
            return nb::make_tuple(run.offset, run.bytes);
          },
          nb::arg("memory"))
      .def("unregister", &region_handle::unregister)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](region_handle& self, const nb::args&) { self.unregister(); })
      .def("__repr__", [](const region_handle& self) {
        return "<terrace.Region of " + std::to_string(self.region().bytes()) + " bytes" +
               (self.registered() ? ">" : ", unregistered>");
      });
}

} // namespace terrace::python
