#include "ticket.hpp"

#include "arguments.hpp"
#include "exported_bytes.hpp"

#include <nanobind/stl/vector.h>

namespace terrace::python {

namespace {

/// Python's terrace.Lookup.
struct lookup_handle {
  client::lookup_result found;
  nb::object lease;
};

nb::list digests_of(const lookup_handle& lookup) {
  nb::list list;
  for (const digest& one : lookup.found.digests)
    list.append(to_bytes(std::span(one.bytes).first(lookup.found.digest_width)));
  return list;
}

std::string text_of(const client::missing_object& missing) {
  return "<terrace.Missing: chunk " + std::to_string(missing.chunk) + ", pool " +
         std::to_string(missing.pool) + ", rank " + std::to_string(missing.rank) +
         (missing.damaged ? ", damaged>" : ">");
}

/// State that the objects of one answer share.
struct read_objects {
  read_objects(std::shared_ptr<held_lease> lease, std::shared_ptr<const void> memory)
      : held(std::move(lease)), mappings(std::move(memory)) {
    if (held)
      ++held->reads_in_use;
  }
  ~read_objects() {
    if (held)
      --held->reads_in_use;
  }
  read_objects(const read_objects&) = delete;
  read_objects& operator=(const read_objects&) = delete;

  std::shared_ptr<held_lease> held;
  std::shared_ptr<const void> mappings;
};

} // namespace

nb::object to_python(const answer_context& with, client::lookup_result&& found) {
  nb::object lease = nb::none();
  if (found.held) {
    lease_id id = found.held.id();
    lease = nb::cast(lease_handle{std::make_shared<held_lease>(with.in, std::move(found.held)), id});
  }
  return nb::cast(lookup_handle{std::move(found), std::move(lease)});
}

nb::object to_python(const answer_context& with, client::located_objects&& located) {
  auto keeps = std::make_shared<read_objects>(with.held, std::move(located.mappings));
  located_handle made{.objects = {}, .first_token = located.first_token, .missing = located.missing};
  for (auto object : located.objects)
    made.objects.append(
        nb::cast(exported_bytes{{const_cast<uint8_t*>(object.data()), object.size()}, false, keeps}));
  return nb::cast(std::move(made));
}

nb::object to_python(const answer_context&, client::load_result&& loaded) {
  return nb::cast(std::move(loaded));
}
nb::object to_python(const answer_context&, client::store_result&& stored) { return nb::cast(stored); }

nb::object to_python(const answer_context&, client::announced_chunks&& announced) {
  return nb::cast(announced);
}

nb::object to_python(const answer_context& with, client::reservation&& reserved) {
  return nb::cast(reservation_handle(std::make_shared<held_reservation>(with.in, std::move(reserved))));
}

void bind_tickets(nb::module_& in) {
  nb::class_<client::missing_object>(in, "Missing")
      .def_ro("chunk", &client::missing_object::chunk)
      .def_ro("pool", &client::missing_object::pool)
      .def_ro("rank", &client::missing_object::rank)
      .def_ro("damaged", &client::missing_object::damaged)
      .def("__repr__", text_of);
  nb::class_<lookup_handle>(in, "Lookup")
      .def_prop_ro("requested_chunks", [](const lookup_handle& self) { return self.found.requested_chunks; })
      .def_prop_ro("found_chunks", [](const lookup_handle& self) { return self.found.found_chunks; })
      .def_prop_ro("found_tokens", [](const lookup_handle& self) { return self.found.found_tokens; })
      .def_prop_ro("usable_tokens", [](const lookup_handle& self) { return self.found.usable_tokens; })
      .def_prop_ro("first_token", [](const lookup_handle& self) { return self.found.first_token; })
      .def_prop_ro("recompute_chunks", [](const lookup_handle& self) { return self.found.recompute_chunks; })
      .def_prop_ro("pending_chunks", [](const lookup_handle& self) { return self.found.pending_chunks; })
      .def_prop_ro("brought_chunks", [](const lookup_handle& self) { return self.found.brought_chunks; })
      .def_prop_ro("tiers", [](const lookup_handle& self) { return to_bytes(self.found.tiers); })
      .def_prop_ro("chunk_tokens", [](const lookup_handle& self) { return self.found.chunk_tokens; })
      .def_prop_ro("tail_tokens", [](const lookup_handle& self) { return self.found.tail_tokens; })
      .def_prop_ro("cursors", [](const lookup_handle& self) { return self.found.cursors; })
      .def_ro("lease", &lookup_handle::lease)
      .def_prop_ro("missing", [](const lookup_handle& self) { return self.found.missing; })
      .def_prop_ro("digests", digests_of)
      .def("__repr__", [](const lookup_handle& self) {
        return "<terrace.Lookup: " + std::to_string(self.found.found_chunks) + " of " +
               std::to_string(self.found.requested_chunks) + " chunks>";
      });
  nb::class_<client::load_result>(in, "Loaded")
      .def_ro("requested_chunks", &client::load_result::requested_chunks)
      .def_ro("delivered_chunks", &client::load_result::delivered_chunks)
      .def_ro("delivered_tokens", &client::load_result::delivered_tokens)
      .def_ro("nbytes", &client::load_result::bytes)
      .def_ro("bytes_by_tier", &client::load_result::bytes_by_tier)
      .def_ro("first_token", &client::load_result::first_token)
      .def_ro("missing", &client::load_result::missing)
      .def_ro("recompute_chunks", &client::load_result::recompute_chunks)
      .def("__repr__", [](const client::load_result& self) {
        return "<terrace.Loaded: " + std::to_string(self.delivered_chunks) + " of " +
               std::to_string(self.requested_chunks) + " chunks, " + std::to_string(self.bytes) + " bytes>";
      });
  nb::class_<client::store_result>(in, "Stored")
      .def_ro("stored_chunks", &client::store_result::stored_chunks)
      .def_ro("present_chunks", &client::store_result::present_chunks)
      .def_ro("nbytes", &client::store_result::bytes)
      .def("__repr__", [](const client::store_result& self) {
        return "<terrace.Stored: " + std::to_string(self.stored_chunks) + " chunks new, " +
               std::to_string(self.present_chunks) + " present>";
      });
  nb::class_<client::announced_chunks>(in, "Announced")
      .def_ro("announced_chunks", &client::announced_chunks::announced)
      .def_ro("found_chunks", &client::announced_chunks::found)
      .def_ro("ended", &client::announced_chunks::ended)
      .def("__repr__", [](const client::announced_chunks& self) {
        return "<terrace.Announced: " + std::to_string(self.found) + " of " + std::to_string(self.announced) +
               (self.ended ? " chunks, ended>" : " chunks>");
      });
  nb::class_<ticket_handle>(in, "Ticket", nb::is_generic())
      .def_prop_ro("done", [](ticket_handle& self) { return self.request->done(); })
      .def(
          "result",
          [](ticket_handle& self, const timeout& seconds) {
            return self.request->take(deadline_of(seconds));
          },
          nb::arg("timeout") = nb::none())
      .def("cancel", [](ticket_handle& self) { self.request->cancel(); });
}

} // namespace terrace::python
