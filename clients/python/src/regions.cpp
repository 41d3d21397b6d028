#include "regions.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "memory_argument.hpp"
#include "prefix.hpp"

#include <algorithm>
#include <limits>

namespace terrace::python {

client::run region_handle::run_of(nb::handle memory) const {
  auto bytes = memory_argument(memory, memory_argument::access::reading).bytes();
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (base_ == 0 && !part_.device.empty())
    refuse("expected offsets in memory of a device, got memory");
  if (base_ == 0)
    refuse("expected a region that was registered by its memory, got one that was registered by a "
           "descriptor: name "
           "offsets instead");
  if (address < base_ || address - base_ > region().bytes() ||
      bytes.size() > region().bytes() - (address - base_))
    refuse("expected memory inside of the region, got some that lies elsewhere");
  return {.offset = address - base_, .bytes = bytes.size(), .stride = bytes.size(), .count = 1};
}

void region_handle::place(std::vector<client::run>& runs) const {
  if (part_.device.empty())
    return;
  for (client::run& run : runs) {
    if (run.offset == client::run::skipped)
      continue;
    uint64_t end = 0;
    bool beyond = run.count > 0 && __builtin_mul_overflow(run.stride, run.count - 1, &end);
    beyond = beyond || __builtin_add_overflow(end, run.bytes, &end) ||
             __builtin_add_overflow(end, run.offset, &end) || end > part_.bytes;
    if (beyond)
      refuse("expected runs inside of the " + std::to_string(part_.bytes) +
             " bytes that were registered, got " + std::to_string(run.count) + " pieces of " +
             std::to_string(run.bytes) + " bytes from " + std::to_string(run.offset) + " on, " +
             std::to_string(run.stride) + " apart");
    run.offset += part_.offset;
  }
}

region_handle::~region_handle() {
  // A destructor cannot wait, so memory of a device stays registered.
  if (part_.device.empty() && registered())
    in_->give_back(std::move(held_->region));
}

void region_handle::unregister(client::deadline until) {
  if (!registered())
    return;
  if (part_.device.empty()) {
    in_->give_back(std::move(held_->region));
    held_->keeps.reset();
    return;
  }
  if (in_->closed())
    return;                                                    // `close` of the connection unregisters it
  client::registered_region region = std::move(held_->region); // from now on no other thread has it
  held_->in_doubt = true;
  result<void> ended;
  try {
    ended = in_->use(until, [&](client::connection&) {
      auto done = region.unregister(until);
      if (done) // before that, `close` may look at it in a turn of its own
        held_->in_doubt = false;
      return done;
    });
  } catch (...) {
    // There was no turn. If `close` has already ended, another thread's turn ends the region.
    if (in_->closed()) {
      in_->give_back(std::move(region));
    } else {
      held_->region = std::move(region);
      held_->in_doubt = false;
    }
    throw;
  }
  held_->in_doubt = !ended && ended.error().code != errc::gone;
  if (ended) {
    in_->let_go(held_);
    held_->keeps.reset();
  }
  value_of(std::move(ended));
}

std::vector<client::run> runs_of(const region_handle& region, nb::handle list) {
  std::vector<client::run> runs;
  if (nb::isinstance<row_runs>(list)) {
    runs = nb::cast<const row_runs&>(list).runs;
    region.place(runs);
    return runs;
  }
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
  region.place(runs);
  return runs;
}

arrivals_handle::arrivals_handle(std::shared_ptr<client::region> memory, nb::object region, uint64_t offset,
                                 uint32_t count)
    : memory_(std::move(memory)), region_(std::move(region)), count_(count),
      counters_(*memory_, this->region().region(), offset, count) {}

namespace {

void bind_arrivals(nb::module_& in) {
  auto known = [](const arrivals_handle& self, uint32_t counter) {
    if (counter >= self.count())
      refuse("expected a counter below " + std::to_string(self.count()) + ", got " + std::to_string(counter));
  };
  nb::class_<arrivals_handle>(in, "Arrivals")
      .def(
          "__init__",
          [](arrivals_handle* self, const shared_memory& memory, nb::object region, uint64_t offset,
             uint32_t count) {
            uint64_t size = memory.region->size();
            if (!nb::isinstance<region_handle>(region))
              throw nb::type_error("expected the region that the memory is registered as");
            if (offset % sizeof(uint32_t) != 0 || offset > size || count == 0 ||
                count > (size - offset) / sizeof(uint32_t))
              refuse("expected counters of 4 bytes, aligned and inside of the memory, got " +
                     std::to_string(count) + " at " + std::to_string(offset) + " of " + std::to_string(size) +
                     " bytes");
            new (self) arrivals_handle(memory.region, std::move(region), offset, count);
          },
          nb::arg("memory"), nb::arg("region"), nb::arg("offset"), nb::arg("count"))
      .def(
          "chunks",
          [known](const arrivals_handle& self, uint32_t counter) {
            known(self, counter);
            return self.counters().chunks(counter);
          },
          nb::arg("counter"))
      .def(
          "wait",
          [known](const arrivals_handle& self, uint32_t counter, uint32_t chunks, const timeout& limit) {
            known(self, counter);
            auto until = deadline_of(limit);
            gil_released others_run;
            return self.counters().wait(counter, chunks, until);
          },
          nb::arg("counter"), nb::arg("chunks"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("end", [](const arrivals_handle& self) { self.counters().end(); })
      .def("__len__", &arrivals_handle::count);
}

} // namespace

namespace {

uint64_t start_of(uint64_t row, uint64_t row_bytes, uint64_t offset) {
  uint64_t begin = 0;
  if (__builtin_mul_overflow(row, row_bytes, &begin) || __builtin_add_overflow(begin, offset, &begin) ||
      begin > std::numeric_limits<uint64_t>::max() - row_bytes)
    refuse("expected rows at less than 2^64 bytes, got row " + std::to_string(row) + " of " +
           std::to_string(row_bytes) + " bytes from " + std::to_string(offset) + " on");
  return begin;
}

/// The runs of objects in slots that lie side by side from `offset` on: in each slot a run for each of `parts`, which are pairs
/// of an offset in the slot and a number of bytes.
row_runs in_slots(uint64_t offset, uint64_t slot_bytes, uint64_t slots, nb::handle parts) {
  std::vector<client::run> of_slot;
  for (nb::handle part : parts) {
    client::run run{.offset = part_of<uint64_t>(part[0], "a number of bytes"),
                    .bytes = part_of<uint64_t>(part[1], "a number of bytes")};
    if (run.offset > slot_bytes || run.bytes > slot_bytes - run.offset)
      refuse("expected parts inside of a slot of " + std::to_string(slot_bytes) + " bytes, got " +
             std::to_string(run.bytes) + " from " + std::to_string(run.offset) + " on");
    of_slot.push_back(run);
  }
  constexpr uint64_t runs_max = 1U << 20; // the protocol's bound
  if (slots > runs_max / std::max<uint64_t>(of_slot.size(), 1))
    refuse("expected at most " + std::to_string(runs_max) + " runs");
  if (slots != 0)
    start_of(slots - 1, slot_bytes, offset); // all of them are below 2^64
  row_runs made;
  made.runs.reserve(slots * of_slot.size());
  for (uint64_t slot = 0; slot < slots; ++slot)
    for (const client::run& part : of_slot)
      made.runs.push_back({.offset = offset + slot * slot_bytes + part.offset,
                           .bytes = part.bytes,
                           .stride = part.bytes,
                           .count = 1});
  return made;
}

} // namespace

void bind_regions(nb::module_& in) {
  bind_arrivals(in);
  nb::class_<row_runs>(in, "Rows")
      .def(
          "__init__",
          [](row_runs* self, nb::handle rows, uint64_t row_bytes, uint64_t offset, uint64_t stride,
             uint64_t count) {
            auto numbers = read_numbers(rows, "rows");
            new (self) row_runs;
            self->runs.reserve(numbers.size());
            for (uint64_t row : numbers)
              self->runs.push_back({.offset = start_of(row, row_bytes, offset),
                                    .bytes = row_bytes,
                                    .stride = stride > 0 ? stride : row_bytes,
                                    .count = count});
          },
          nb::arg("rows"), nb::arg("row_bytes"), nb::kw_only(), nb::arg("offset") = 0, nb::arg("stride") = 0,
          nb::arg("count") = 1)
      .def_static("in_slots", in_slots, nb::arg("offset"), nb::arg("slot_bytes"), nb::arg("slots"),
                  nb::arg("parts"))
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
      .def("commit",
           [](const shared_memory& self) {
             result<void> done;
             {
               gil_released others_run;
               done = self.region->commit();
             }
             value_of(std::move(done));
           })
      .def("__repr__", [](const shared_memory& self) {
        return "<terrace.Memory of " + std::to_string(self.bytes.size()) + " bytes>";
      });

  nb::class_<region_handle>(in, "Region")
      .def_prop_ro("nbytes", &region_handle::bytes)
      .def_prop_ro("device", &region_handle::device)
      .def_prop_ro("mapped", [](const region_handle& self) { return self.region().mapped(); })
      .def_prop_ro("registered", &region_handle::registered)
      .def(
          "run_of",
          [](const region_handle& self, nb::handle memory) {
            auto run = self.run_of(memory);
            return nb::make_tuple(run.offset, run.bytes);
          },
          nb::arg("memory"))
      .def(
          "unregister",
          [](region_handle& self, const timeout& limit) { self.unregister(deadline_of(limit)); },
          nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](region_handle& self, const nb::args&) { self.unregister({}); })
      .def("__repr__", [](const region_handle& self) {
        return "<terrace.Region of " + std::to_string(self.bytes()) + " bytes" +
               (self.device().empty() ? "" : " of " + self.device()) +
               (self.registered() ? ">" : ", unregistered>");
      });
}

} // namespace terrace::python
