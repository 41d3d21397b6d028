// Reports are plain dictionaries; terrace/status.py makes its classes of them, member by member.
#include "arguments.hpp"
#include "connection.hpp"

#include <nanobind/stl/vector.h>

namespace terrace::python {

namespace {

template <class List, class Make>
nb::list list_of(const List& from, Make&& make) {
  nb::list list;
  for (const auto& one : from)
    list.append(make(one));
  return list;
}

nb::dict to_dict(const client::tier_status& t) {
  nb::dict d;
  d["tier"] = t.tier;
  d["state"] = t.state;
  d["reason"] = t.reason;
  d["capacity_bytes"] = t.capacity_bytes;
  d["used_bytes"] = t.used_bytes;
  d["free_bytes"] = t.free_bytes;
  d["largest_free_run"] = t.largest_free_run;
  d["objects"] = t.objects;
  d["leased_objects"] = t.leased_objects;
  d["waiting_requests"] = t.waiting_requests;
  d["hits"] = t.hits;
  d["misses"] = t.misses;
  d["evictions"] = t.evictions;
  d["bytes_read"] = t.bytes_read;
  d["bytes_written"] = t.bytes_written;
  d["errors"] = t.errors;
  d["allocator"] = t.allocator;
  d["policy"] = t.policy;
  d["free_runs"] = t.free_runs;
  d["fragmentation"] = t.fragmentation;
  d["huge_page_bytes"] = t.huge_page_bytes;
  d["leaving_bytes"] = t.leaving_bytes;
  d["notice"] = t.notice;
  return d;
}

nb::dict to_dict(const client::space_status& s) {
  nb::dict d;
  d["space"] = s.space;
  d["model"] = s.model;
  d["fingerprint"] = to_bytes(s.fingerprint.bytes);
  d["pools"] = nb::cast(s.pools);
  return d;
}

nb::dict to_dict(const client::group_status& g) {
  nb::dict d;
  d["name"] = g.name;
  d["path"] = g.path;
  d["isolated"] = g.isolated;
  d["spaces"] = g.spaces;
  d["leases"] = g.leases;
  d["region_bytes"] = g.region_bytes;
  d["region_bytes_max"] = g.region_bytes_max;
  d["tiers"] = list_of(g.tiers, [](const auto& one) { return to_dict(one); });
  d["open_spaces"] = list_of(g.open_spaces, [](const auto& one) { return to_dict(one); });
  return d;
}

nb::dict to_dict(const client::client_status& c) {
  nb::dict d;
  d["connection"] = static_cast<uint64_t>(c.connection);
  d["name"] = c.name;
  d["pid"] = c.pid;
  d["uid"] = c.uid;
  d["group"] = c.group;
  d["state"] = c.state;
  d["requests_in_flight"] = c.requests_in_flight;
  d["regions"] = c.regions;
  d["region_bytes"] = c.region_bytes;
  d["leases"] = c.leases;
  d["reservations"] = c.reservations;
  d["requests"] = c.requests;
  d["age"] = static_cast<double>(c.age.count()) / 1e3;
  d["leased_bytes"] = c.leased_bytes;
  d["quarantined_bytes"] = c.quarantined_bytes;
  d["answered"] = c.answered;
  d["latency"] = static_cast<double>(c.latency.count()) / 1e6;
  return d;
}

nb::dict to_dict(const client::device_status& one) {
  nb::dict d;
  d["device"] = one.device;
  d["state"] = one.state;
  d["reason"] = one.reason;
  d["description"] = one.description;
  d["pid"] = one.pid;
  d["regions"] = one.regions;
  d["region_bytes"] = one.region_bytes;
  d["loaded_bytes"] = one.loaded_bytes;
  d["stored_bytes"] = one.stored_bytes;
  d["starts"] = one.starts;
  d["failures"] = one.failures;
  d["pinned_bytes"] = one.pinned_bytes;
  d["direct_bytes"] = one.direct_bytes;
  d["staged_bytes"] = one.staged_bytes;
  d["disk_bytes"] = one.disk_bytes;
  d["disk_reads"] = one.disk_reads;
  return d;
}

nb::dict to_dict(const client::daemon_status& s) {
  nb::dict d;
  d["version"] = s.version;
  d["boot"] = to_bytes(s.boot.bytes);
  d["uptime"] = static_cast<double>(s.uptime.count()) / 1e3;
  d["workers"] = s.workers;
  d["ring"] = nb::cast(s.ring);
  d["groups"] = list_of(s.groups, [](const auto& one) { return to_dict(one); });
  d["clients"] = list_of(s.clients, [](const auto& one) { return to_dict(one); });
  d["devices"] = list_of(s.devices, [](const auto& one) { return to_dict(one); });
  return d;
}

nb::dict to_dict(const client::policies_status& p) {
  nb::dict d;
  d["group"] = p.group;
  d["tiers"] = list_of(p.tiers, [](const client::tier_policy& one) {
    nb::dict t;
    t["tier"] = one.tier;
    t["policy"] = one.policy;
    t["objects"] = one.objects;
    return t;
  });
  d["tracked"] = p.tracked;
  d["ghosts"] = p.ghosts;
  d["bookkeeping_bytes"] = p.bookkeeping_bytes;
  d["shadows"] = list_of(p.shadows, [](const client::shadow_policy& one) {
    nb::dict s;
    s["policy"] = one.policy;
    s["capacity_bytes"] = one.capacity_bytes;
    s["used_bytes"] = one.used_bytes;
    s["objects"] = one.objects;
    s["bookkeeping_bytes"] = one.bookkeeping_bytes;
    s["requests"] = one.requests;
    s["asked"] = one.asked;
    s["hits"] = one.hits;
    s["asked_bytes"] = one.asked_bytes;
    s["hit_bytes"] = one.hit_bytes;
    s["evictions"] = one.evictions;
    return s;
  });
  d["skipped_requests"] = p.skipped_requests;
  d["known"] = nb::cast(p.known);
  return d;
}

} // namespace

void bind_reports(connection_class& to) {
  to.def(
      "_status",
      [](connection_handle& self, const timeout& limit) {
        auto until = deadline_of(limit);
        return to_dict(value_of(
            self.in->use(until, [&](client::connection& daemon) { return daemon.admin().status(until); })));
      },
      nb::arg("timeout") = nb::none());
  to.def(
      "_policies",
      [](connection_handle& self, const timeout& limit) {
        auto until = deadline_of(limit);
        return to_dict(value_of(
            self.in->use(until, [&](client::connection& daemon) { return daemon.admin().policies(until); })));
      },
      nb::arg("timeout") = nb::none());
}

} // namespace terrace::python
