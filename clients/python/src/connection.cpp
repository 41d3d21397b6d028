#include "connection.hpp"

#include "arguments.hpp"
#include "client/device_place.hpp"
#include "gil.hpp"
#include "prefix.hpp"
#include "regions.hpp"
#include "spaces.hpp"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace terrace::python {

namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(nanoseconds_of(seconds));
}

void connect(connection_handle* self, const std::string& path, const std::string& name, const timeout& limit,
             bool observes, uint32_t socket_buffer_bytes, double backoff_least, double backoff_most) {
  client::connect_options options{.path = path,
                                  .name = name,
                                  .observes = observes,
                                  .socket_buffer_bytes = socket_buffer_bytes,
                                  .backoff_least = milliseconds_of(backoff_least),
                                  .backoff_most = milliseconds_of(backoff_most)};
  auto until = deadline_of(limit);
  auto connected = [&] {
    gil_released others_run;
    return client::connection::connect(std::move(options), until);
  }();
  new (self) connection_handle{std::make_shared<shared_connection>(value_of(std::move(connected)))};
}

space_handle open_space(connection_handle& self, nb::handle described, const timeout& limit) {
  auto spec = spec_of(described);
  auto until = deadline_of(limit);
  std::vector<client::open_pool> pools;
  auto opened = value_of(self.in->use(until, [&](client::connection& daemon) {
    auto space = daemon.open_space(spec, until);
    if (space) {
      auto list = daemon.pools_of(*space);
      pools.assign(list.begin(), list.end());
    }
    return space;
  }));
  return {self.in, opened, std::move(pools)};
}

void close_space(connection_handle& self, space_handle& given, const timeout& limit) {
  const client::space& space = space_in(self.in, given);
  auto until = deadline_of(limit);
  value_of(self.in->use(until, [&](client::connection& daemon) { return daemon.close_space(space, until); }));
}

nb::object register_descriptor(connection_handle& self, int descriptor, uint64_t bytes, uintptr_t base,
                               nb::object keeps, const timeout& limit) {
  auto until = deadline_of(limit);
  auto region = value_of(self.in->use(
      until, [&](client::connection& daemon) { return daemon.register_region(descriptor, bytes, until); }));
  return nb::cast(std::make_unique<region_handle>(self.in, std::move(region), base, std::move(keeps)));
}

region_handle* registered_of(connection_handle& self, const client::device_allocation& memory,
                             const timeout& limit, uintptr_t base, nb::object keeps, device_part part) {
  auto until = deadline_of(limit);
  auto region = value_of(self.in->use(
      until, [&](client::connection& daemon) { return daemon.register_device_region(memory, until); }));
  return new region_handle(self.in, std::move(region), base, std::move(keeps), std::move(part));
}

/// Registers memory of a GPU, which the driver of this process knows.
region_handle* register_device(connection_handle& self, uint64_t address, uint64_t bytes, nb::object keeps,
                               const timeout& limit) {
  auto place = [&] {
    gil_released others_run;
    return client::find_device_memory({.address = address, .bytes = bytes});
  }();
  auto found = value_of(std::move(place));
  return registered_of(self, found.allocation, limit, 0, std::move(keeps),
                       {found.allocation.device, found.offset, bytes});
}

/// Registers memory of the device in host memory.
region_handle* register_host_device(connection_handle& self, int descriptor, uint64_t bytes, uintptr_t base,
                                    nb::object keeps, const timeout& limit) {
  client::device_allocation memory{.device = "host", .bytes = bytes, .descriptor = descriptor};
  return registered_of(self, memory, limit, base, std::move(keeps), {memory.device, 0, bytes});
}

nb::object register_generations(connection_handle& self, nb::object memory, const std::string& device,
                                const timeout& limit) {
  const auto& page = *nb::cast<const shared_memory&>(memory).region;
  auto until = deadline_of(limit);
  auto region = value_of(self.in->use(
      until, [&](client::connection& daemon) { return daemon.register_generations(page, device, until); }));
  auto base = reinterpret_cast<uintptr_t>(page.data());
  return nb::cast(std::make_unique<region_handle>(self.in, std::move(region), base, std::move(memory)));
}

nb::tuple move(connection_handle& self, space_handle& space, nb::handle what, uint8_t to,
               const timeout& limit) {
  prefix_argument prefix(what);
  client::prompt_request request{.in = space_in(self.in, space), .what = prefix.view()};
  auto until = deadline_of(limit);
  auto moved = value_of(self.in->use(until, [&](client::connection& daemon) {
    return daemon.admin().move(request, static_cast<tier_kind>(to), until);
  }));
  return nb::make_tuple(moved.requested_chunks, moved.moved.chunks, moved.present.chunks,
                        moved.missing.chunks, moved.held.chunks, moved.failed.chunks, moved.moved.bytes);
}

nb::tuple evict(connection_handle& self, space_handle& space, nb::handle what, nb::handle tiers,
                const timeout& limit) {
  prefix_argument prefix(what);
  client::prompt_request request{
      .in = space_in(self.in, space), .what = prefix.view(), .tiers = tiers_of(tiers)};
  auto until = deadline_of(limit);
  auto evicted = value_of(
      self.in->use(until, [&](client::connection& daemon) { return daemon.admin().evict(request, until); }));
  return nb::make_tuple(evicted.objects, evicted.bytes);
}

nb::dict daemon_of(connection_handle& self) {
  client::daemon_info info = self.in->use({}, [](client::connection& daemon) { return daemon.daemon(); });
  nb::dict d;
  d["version"] = info.version;
  d["protocol_version"] = info.protocol_version;
  d["boot"] = to_bytes(info.boot.bytes);
  d["connection"] = static_cast<uint64_t>(info.connection);
  d["group"] = info.group;
  d["features"] = nb::tuple(nb::cast(info.features));
  d["credit_requests"] = info.credit_requests;
  d["credit_bytes"] = info.credit_bytes;
  d["frame_bytes_max"] = info.frame_bytes_max;
  return d;
}

void end_inference(connection_handle& self, uint64_t inference, std::optional<uint32_t> output_tokens,
                   int reason, bool session_closed, std::optional<double> think_time,
                   std::optional<int64_t> time_ns, bool wait, const timeout& limit) {
  client::inference_end end{.inference = inference,
                            .output_tokens = output_tokens,
                            .reason = static_cast<client::finish_reason>(reason),
                            .session_closed = session_closed};
  if (think_time)
    end.think_time = milliseconds_of(*think_time);
  if (time_ns)
    end.time = std::chrono::nanoseconds(*time_ns);
  auto until = deadline_of(limit);
  if (wait)
    value_of(
        self.in->use(until, [&](client::connection& daemon) { return daemon.end_inference(end, until); }));
  else
    self.in->use(until, [&](client::connection& daemon) { daemon.async().end_inference(end); });
}

nb::object clear(connection_handle& self, std::optional<space_handle*> only, const timeout& limit) {
  const client::space* space = only && *only ? &space_in(self.in, **only) : nullptr;
  auto until = deadline_of(limit);
  auto cleared = value_of(
      self.in->use(until, [&](client::connection& daemon) { return daemon.admin().clear(space, until); }));
  return nb::make_tuple(cleared.objects, cleared.bytes);
}

} // namespace

connection_class bind_connection(nb::module_& in) {
  connection_class connection(in, "Connection");
  connection
      .def("__init__", connect, nb::arg("path"), nb::kw_only(), nb::arg("name") = "python",
           nb::arg("timeout") = nb::none(), nb::arg("observes") = false,
           nb::arg("socket_buffer_bytes") = 1U << 20, nb::arg("backoff_least") = 0.01,
           nb::arg("backoff_most") = 2.0)
      .def("_daemon", daemon_of)
      .def_prop_ro("alive",
                   [](connection_handle& self) {
                     bool alive = false, closed = false;
                     // If another thread is inside, the connection was alive when that thread went in.
                     bool asked =
                         self.in->use_if_free([&](client::connection& daemon) { alive = daemon.alive(); });
                     closed = self.in->closed();
                     return asked ? alive : !closed;
                   })
      .def("fileno",
           [](connection_handle& self) {
             int open = self.in->use(
                 {}, [](client::connection& daemon) { return daemon.alive() ? daemon.descriptor() : -1; });
             if (open < 0)
               throw failure({errc::gone, "expected a connection that is alive, got one that was lost"});
             return open;
           })
      .def(
          "reconnect",
          [](connection_handle& self, const timeout& limit) {
            auto until = deadline_of(limit);
            return value_of(
                self.in->use(until, [&](client::connection& daemon) { return daemon.reconnect(until); }));
          },
          nb::arg("timeout") = nb::none())
      .def(
          "close", [](connection_handle& self, const timeout& limit) { self.in->close(deadline_of(limit)); },
          nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_open_space", open_space, nb::arg("described"), nb::arg("timeout") = nb::none())
      .def("close_space", close_space, nb::arg("space"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_register", register_descriptor, nb::arg("descriptor"), nb::arg("nbytes"), nb::arg("base") = 0,
           nb::arg("keeps") = nb::none(), nb::arg("timeout") = nb::none())
      .def("_register_device", register_device, nb::arg("address"), nb::arg("nbytes"),
           nb::arg("keeps") = nb::none(), nb::arg("timeout") = nb::none())
      .def("_register_host_device", register_host_device, nb::arg("descriptor"), nb::arg("nbytes"),
           nb::arg("base") = 0, nb::arg("keeps") = nb::none(), nb::arg("timeout") = nb::none())
      .def("register_generations", register_generations, nb::arg("memory"), nb::arg("device"), nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("_move", move, nb::arg("space"), nb::arg("what"), nb::arg("to"), nb::arg("timeout") = nb::none())
      .def("_evict", evict, nb::arg("space"), nb::arg("what"), nb::arg("tiers"),
           nb::arg("timeout") = nb::none())
      .def("end_inference", end_inference, nb::arg("inference"), nb::kw_only(),
           nb::arg("output_tokens") = nb::none(), nb::arg("reason") = 0, nb::arg("session_closed") = false,
           nb::arg("think_time") = nb::none(), nb::arg("time_ns") = nb::none(), nb::arg("wait") = true,
           nb::arg("timeout") = nb::none())
      .def("_clear", clear, nb::arg("space") = nb::none(), nb::arg("timeout") = nb::none())
      .def(
          "set_policy",
          [](connection_handle& self, const std::string& tier, const std::string& policy,
             const timeout& limit) {
            auto until = deadline_of(limit);
            return value_of(self.in->use(until, [&](client::connection& daemon) {
              return daemon.admin().set_policy(tier, policy, until);
            }));
          },
          nb::arg("tier"), nb::arg("policy"), nb::kw_only(), nb::arg("timeout") = nb::none());
  return connection;
}

} // namespace terrace::python
