#include "connection.hpp"

#include "arguments.hpp"
#include "client/segments.hpp"
#include "gil.hpp"
#include "layers.hpp"
#include "memory_argument.hpp"
#include "options.hpp"
#include "prefix.hpp"
#include "regions.hpp"
#include "spaces.hpp"
#include "ticket.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

namespace terrace::python {

namespace {

// Each request exists in both forms: with `waits` it returns its result, otherwise a ticket.
template <class T, bool waits, class Submit>
nb::object run(const answer_context& with, client::deadline until, Submit&& submit) {
  if constexpr (waits)
    return ask<T>(with, until, submit);
  else
    return begin<T>(with, until, submit);
}

template <bool waits>
nb::object lookup(connection_handle& self, space_handle& space, nb::handle what, bool lease, nb::handle tiers,
                  std::optional<nb::bytes> id, bool digests, std::optional<owned_options*> options,
                  const timeout& limit) {
  prefix_argument prefix(what);
  client::lookup_request request{.in = space_in(self.in, space),
                                 .what = prefix.view(),
                                 .lease = lease,
                                 .tiers = tiers_of(tiers),
                                 .options = options_of(options),
                                 .digests = digests};
  if (id)
    request.id = id_of<lookup_id>(*id);
  auto until = deadline_of(limit);
  return run<client::lookup_result, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().lookup(request, until);
  });
}

template <bool waits>
nb::object await_lookup(connection_handle& self, const nb::bytes& id, std::optional<owned_options*> options,
                        const timeout& limit) {
  auto name = id_of<lookup_id>(id);
  auto with = options_of(options);
  auto until = deadline_of(limit);
  return run<client::lookup_result, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().await_lookup(name, until, with);
  });
}

nb::object submit_announce(connection_handle& self, space_handle& space, nb::handle what,
                           const nb::bytes& name, std::optional<owned_options*> options,
                           const timeout& limit) {
  prefix_argument prefix(what);
  client::announcement request{.in = space_in(self.in, space),
                               .what = prefix.view(),
                               .name = id_of<lookup_id>(name),
                               .options = options_of(options)};
  auto until = deadline_of(limit);
  return begin<client::announced_chunks>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().announce(request, until);
  });
}

template <bool waits>
nb::object follow(connection_handle& self, const nb::bytes& name, uint32_t chunks,
                  std::optional<owned_options*> options, const timeout& limit) {
  auto id = id_of<lookup_id>(name);
  auto with = options_of(options);
  auto until = deadline_of(limit);
  return run<client::announced_chunks, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().follow(id, chunks, until, with);
  });
}

/// Checks that places read under the lease before can be given up.
void check_unused(const lease_argument& leased) {
  if (!leased.held || leased.held->reads_in_use == 0)
    return;
  PyErr_SetString(PyExc_BufferError,
                  "objects that were read under this lease are in use: release them first");
  throw nb::python_error();
}

template <bool waits>
nb::object read_lease(connection_handle& self, nb::handle lease, uint32_t first_chunk, uint32_t chunks,
                      nb::handle pools, bool give_up_earlier, std::optional<owned_options*> options,
                      const timeout& limit) {
  lease_argument leased(lease);
  if (give_up_earlier)
    check_unused(leased);
  auto earlier = give_up_earlier ? client::earlier_places::given_up : client::earlier_places::kept;
  auto wanted = numbers_of<uint8_t>(pools, "a pool's number");
  auto with = options_of(options);
  auto until = deadline_of(limit);
  return run<client::located_objects, waits>({self.in, leased.held}, until, [&](client::connection& daemon) {
    return daemon.async().read_lease(leased.id, {first_chunk, chunks}, until, wanted, earlier, with);
  });
}

/// Marks places read under the lease as in use while it lives, so that nobody tells the daemon otherwise.
/// Made and destroyed with the GIL. `of` may be null.
class reading_in_place {
 public:
  explicit reading_in_place(held_lease* of) : of_(of) {
    if (of_ != nullptr)
      ++of_->reads_in_use;
  }
  ~reading_in_place() {
    if (of_ != nullptr)
      --of_->reads_in_use;
  }
  reading_in_place(const reading_in_place&) = delete;
  reading_in_place& operator=(const reading_in_place&) = delete;

 private:
  held_lease* of_;
};

/// Objects are found and copied without the GIL, and no Python object is made for any of them.
uint64_t load_under_lease(connection_handle& self, nb::handle lease, nb::handle into, uint32_t first_chunk,
                          uint32_t chunks, nb::handle pools, const timeout& limit) {
  lease_argument leased(lease);
  destinations memory(into);
  auto wanted = numbers_of<uint8_t>(pools, "a pool's number");
  auto until = deadline_of(limit);
  client::lease_parts parts({first_chunk, chunks}, memory.bytes);
  while (parts.more()) {
    if (parts.earlier() == client::earlier_places::given_up)
      check_unused(leased);
    auto located =
        value_of(answer_of<client::located_objects>(*self.in, until, [&](client::connection& daemon) {
          return daemon.async().read_lease(leased.id, parts.range(), until, wanted, parts.earlier());
        }));
    reading_in_place uses(leased.held.get());
    gil_released others_run;
    value_of(parts.copy(located.objects));
  }
  return parts.bytes();
}

/// Arguments common to loads and stores.
struct transfer {
  transfer(connection_handle& self, region_handle& region, nb::handle run_list, nb::handle counts,
           nb::handle pool_list)
      : runs(runs_of(region, run_list)), runs_per_object(numbers_of<uint32_t>(counts, "a number of runs")),
        pools(numbers_of<uint8_t>(pool_list, "a pool's number")) {
    if (region.in() != self.in || !region.registered())
      refuse("expected a region that is registered with this connection");
  }
  std::vector<client::run> runs;
  std::vector<uint32_t> runs_per_object;
  std::vector<uint8_t> pools;
};

/// Returns null for None.
std::shared_ptr<load_slot> slot_of(const connection_handle& self, nb::handle given) {
  if (given.is_none())
    return nullptr;
  if (!nb::isinstance<load_slot>(given))
    throw nb::type_error("expected layers as what LayerRing.begin gives");
  auto slot = nb::cast<std::shared_ptr<load_slot>>(given);
  if (slot->of->in != self.in || slot->ended)
    refuse("expected a load that a ring of this connection has begun and that has not ended");
  return slot;
}

template <bool waits>
nb::object load(connection_handle& self, std::optional<space_handle*> space, nb::handle what,
                region_handle& region, nb::handle runs, uint32_t first_chunk, uint32_t chunks,
                nb::handle runs_per_object, nb::handle pools, std::optional<arrivals_handle*> arrivals,
                nb::object layers, std::optional<owned_options*> options, const timeout& limit) {
  transfer lists(self, region, runs, runs_per_object, pools);
  const client::arrivals* progress = arrivals && *arrivals ? &(*arrivals)->counters() : nullptr;
  if (progress != nullptr && !(*arrivals)->region().registered())
    refuse("expected arrivals in a region that is registered");
  client::load_request request{.range = {first_chunk, chunks},
                               .region = &region.region(),
                               .runs = lists.runs,
                               .runs_per_object = lists.runs_per_object,
                               .pools = lists.pools,
                               .options = options_of(options),
                               .progress = progress};
  bool has_space = space && *space != nullptr;
  if (has_space)
    request.in = space_in(self.in, **space);
  std::optional<lease_argument> leased;
  std::optional<prefix_argument> prefix;
  if (nb::isinstance<lease_handle>(what) || nb::isinstance<nb::bytes>(what)) {
    leased.emplace(what);
    request.lease = leased->id;
  } else if (has_space) {
    prefix.emplace(what);
    request.what = prefix->view();
  } else {
    refuse("expected a space with the prefix, got None: only a lease knows its own");
  }
  if (progress != nullptr)
    progress->restart();
  struct at_end {
    const client::arrivals* progress;
    ~at_end() {
      if (progress != nullptr)
        progress->end();
    }
  } ended{waits ? progress : nullptr};
  answer_context with{self.in, leased ? leased->held : nullptr};
  auto slot = slot_of(self, layers);
  if (slot != nullptr) {
    request.layers = slot->load;
    with.ended = [slot](errc answer) { slot->end(answer); };
  }
  auto until = deadline_of(limit);
  try {
    auto given = run<client::load_result, waits>(
        with, until, [&](client::connection& daemon) { return daemon.async().load(request, until); });
    if (waits && slot)
      slot->end(errc::ok);
    return given;
  } catch (const failure& why) {
    if (slot)
      slot->end(why.why().code);
    throw;
  } catch (...) { // a signal handler has raised, so the request is given up
    if (slot)
      slot->end(errc::cancelled);
    throw;
  }
}

/// Reads a tuple (region, offset, value).
std::optional<client::generation> generation_of(connection_handle& self, nb::handle given) {
  if (given.is_none())
    return {};
  bool complete = nb::isinstance<nb::tuple>(given) && nb::len(given) == 3;
  if (!complete || !nb::isinstance<region_handle>(given[0]))
    throw nb::type_error("expected a generation as (region, offset, value)");
  const auto& region = nb::cast<const region_handle&>(given[0]);
  if (region.in() != self.in || !region.registered())
    refuse("expected a generation in a region that is registered with this connection");
  return client::generation{.in = &region.region(),
                            .offset = part_of<uint64_t>(given[1], "a number of bytes"),
                            .value = part_of<uint32_t>(given[2], "a counter's value")};
}

template <bool waits>
nb::object store(connection_handle& self, space_handle& space, nb::handle what, region_handle& region,
                 nb::handle runs, uint32_t first_chunk, uint32_t chunks, nb::handle runs_per_object,
                 nb::handle pools, nb::handle after, std::optional<owned_options*> options,
                 const timeout& limit) {
  prefix_argument prefix(what);
  transfer lists(self, region, runs, runs_per_object, pools);
  client::store_request request{.in = space_in(self.in, space),
                                .what = prefix.view(),
                                .range = {first_chunk, chunks},
                                .region = &region.region(),
                                .runs = lists.runs,
                                .runs_per_object = lists.runs_per_object,
                                .pools = lists.pools,
                                .options = options_of(options),
                                .after = generation_of(self, after)};
  auto until = deadline_of(limit);
  return run<client::store_result, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().store(request, until);
  });
}

template <bool waits>
nb::object reserve(connection_handle& self, space_handle& space, nb::handle what, uint32_t first_chunk,
                   uint32_t chunks, nb::handle pools, std::optional<owned_options*> options,
                   const timeout& limit) {
  prefix_argument prefix(what);
  auto wanted = numbers_of<uint8_t>(pools, "a pool's number");
  client::reserve_request request{.in = space_in(self.in, space),
                                  .what = prefix.view(),
                                  .range = {first_chunk, chunks},
                                  .pools = wanted,
                                  .options = options_of(options)};
  auto until = deadline_of(limit);
  return run<client::reservation, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().reserve(request, until);
  });
}

template <bool waits>
nb::object commit(connection_handle& self, reservation_handle& written, std::optional<owned_options*> options,
                  const timeout& limit) {
  auto with = options_of(options);
  auto until = deadline_of(limit);
  auto taken = written.take();
  if (taken->in != self.in)
    refuse("expected a reservation of this connection, got another's: it is aborted");
  return run<client::store_result, waits>({self.in, nullptr}, until, [&](client::connection& daemon) {
    return daemon.async().commit(std::move(taken->reserved), until, with);
  });
}

void bind_options(nb::module_& in) {
  nb::class_<owned_options>(in, "Options")
      .def(
          "__init__",
          [](owned_options* self, std::optional<uint8_t> priority, const std::string& trace,
             uint64_t inference, uint64_t session, uint32_t turn, std::optional<int64_t> time_ns,
             std::optional<uint32_t> prefill_tokens_per_s, std::optional<bool> no_load,
             std::optional<bool> no_store) {
            new (self) owned_options{
                {.priority = priority, .trace = {}, .inference = inference, .session = session, .turn = turn},
                trace};
            if (time_ns)
              self->options.time = std::chrono::nanoseconds(*time_ns);
            self->options.prefill_tokens_per_s = prefill_tokens_per_s;
            self->options.no_load = no_load;
            self->options.no_store = no_store;
          },
          nb::kw_only(), nb::arg("priority") = nb::none(), nb::arg("trace") = "", nb::arg("inference") = 0,
          nb::arg("session") = 0, nb::arg("turn") = 0, nb::arg("time_ns") = nb::none(),
          nb::arg("prefill_tokens_per_s") = nb::none(), nb::arg("no_load") = nb::none(),
          nb::arg("no_store") = nb::none());
}

/// Binds each request by its name, and as a ticket by `submit_` and its name.
template <class Waiting, class Submitting, class... Arguments>
void bind_both(connection_class& to, const std::string& name, Waiting waiting, Submitting submitting,
               const Arguments&... arguments) {
  to.def(name.c_str(), waiting, arguments...);
  to.def(("submit_" + name).c_str(), submitting, arguments...);
}

} // namespace

void bind_requests(nb::module_& in, connection_class& to) {
  bind_options(in);
  auto none = nb::none();
  nb::tuple nothing;
  bind_both(to, "lookup", lookup<true>, lookup<false>, nb::arg("space"), nb::arg("what"), nb::kw_only(),
            nb::arg("lease") = false, nb::arg("tiers") = nothing, nb::arg("id") = none,
            nb::arg("digests") = false, nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "await_lookup", await_lookup<true>, await_lookup<false>, nb::arg("id"), nb::kw_only(),
            nb::arg("options") = none, nb::arg("timeout") = none);
  to.def("submit_announce", submit_announce, nb::arg("space"), nb::arg("what"), nb::arg("name"),
         nb::kw_only(), nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "follow", follow<true>, follow<false>, nb::arg("name"), nb::kw_only(), nb::arg("chunks") = 0,
            nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "read_lease", read_lease<true>, read_lease<false>, nb::arg("lease"), nb::kw_only(),
            nb::arg("first_chunk") = 0, nb::arg("chunks") = 0, nb::arg("pools") = nothing,
            nb::arg("give_up_earlier") = false, nb::arg("options") = none, nb::arg("timeout") = none);
  to.def("load_under_lease", load_under_lease, nb::arg("lease"), nb::arg("into"), nb::kw_only(),
         nb::arg("first_chunk") = 0, nb::arg("chunks") = 0, nb::arg("pools") = nothing,
         nb::arg("timeout") = none);
  bind_both(to, "load", load<true>, load<false>, nb::arg("space").none(), nb::arg("what"), nb::arg("region"),
            nb::arg("runs"), nb::kw_only(), nb::arg("first_chunk") = 0, nb::arg("chunks") = 0,
            nb::arg("runs_per_object") = nothing, nb::arg("pools") = nothing, nb::arg("arrivals") = none,
            nb::arg("layers") = none, nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "store", store<true>, store<false>, nb::arg("space"), nb::arg("what"), nb::arg("region"),
            nb::arg("runs"), nb::kw_only(), nb::arg("first_chunk") = 0, nb::arg("chunks") = 0,
            nb::arg("runs_per_object") = nothing, nb::arg("pools") = nothing, nb::arg("after") = none,
            nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "reserve", reserve<true>, reserve<false>, nb::arg("space"), nb::arg("what"), nb::kw_only(),
            nb::arg("first_chunk") = 0, nb::arg("chunks") = 0, nb::arg("pools") = nothing,
            nb::arg("options") = none, nb::arg("timeout") = none);
  bind_both(to, "commit", commit<true>, commit<false>, nb::arg("reservation"), nb::kw_only(),
            nb::arg("options") = none, nb::arg("timeout") = none);
  to.def(
      "cancel_lookup",
      [](connection_handle& self, const nb::bytes& id, const timeout& limit) {
        auto name = id_of<lookup_id>(id);
        auto until = deadline_of(limit);
        return value_of(self.in->use(
            until, [&](client::connection& daemon) { return daemon.cancel_lookup(name, until); }));
      },
      nb::arg("id"), nb::kw_only(), nb::arg("timeout") = none);
  to.def(
      "adopt",
      [](connection_handle& self, const nb::bytes& id) {
        auto name = id_of<lease_id>(id);
        auto adopted = self.in->use({}, [&](client::connection& daemon) { return daemon.adopt(name); });
        return lease_handle{std::make_shared<held_lease>(self.in, std::move(adopted)), name};
      },
      nb::arg("id"));
  to.def("poll", [](connection_handle& self) {
    result<uint32_t> came = 0;
    self.in->use_if_free([&](client::connection& daemon) { came = daemon.poll(now()); });
    return value_of(std::move(came));
  });
}

} // namespace terrace::python
