#include "client/client.hpp"
#include "client/core.hpp"
#include "client/decode.hpp"
#include "client/socket.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

namespace terrace::client {

using detail::answer;
using detail::body_builder;
using detail::encode;
using detail::milliseconds_left;
using detail::request_context;
using protocol::kind;

namespace {

template <class T>
tl::unexpected<error> pass_on(const result<T>& failed) {
  return tl::unexpected<error>(failed.error());
}

} // namespace

// ---- the connection ----

connection::connection(std::shared_ptr<detail::core> core) : core_(std::move(core)) {}
connection::connection(connection&&) noexcept = default;

connection& connection::operator=(connection&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

connection::~connection() {
  if (core_)
    core_->now()->end("this connection was closed by its owner");
}

result<connection> connection::connect(connect_options options, deadline until) {
  auto socket = detail::connect_socket(options.path, until);
  if (!socket)
    return pass_on(socket);
  return over(std::move(*socket), std::move(options), until);
}

result<connection> connection::over(unique_fd socket, connect_options options, deadline until) {
  auto core = std::make_shared<detail::core>(std::move(options));
  if (auto ok = core->start(std::move(socket), until); !ok)
    return pass_on(ok);
  return connection(std::move(core));
}

const daemon_info& connection::daemon() const { return core_->info(); }
bool connection::alive() const { return core_->now()->alive(); }
int connection::descriptor() const { return core_->now()->descriptor(); }
result<bool> connection::reconnect(deadline until) { return core_->reconnect(until); }

result<space> connection::open_space(const space_spec& spec, deadline until) {
  return core_->open_space(spec, until);
}

result<void> connection::close_space(const space& opened, deadline until) {
  return core_->close_space(opened, until);
}

std::span<const open_pool> connection::pools_of(const space& opened) const { return core_->pools_of(opened); }

result<registered_region> connection::register_region(int memory, uint64_t bytes, deadline until) {
  unique_fd own(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
  if (!own)
    return fail(errc::bad_request,
                "cannot duplicate the region's descriptor: " + std::string(std::strerror(errno)));
  auto slot = core_->register_region(std::move(own), bytes, until);
  if (!slot)
    return pass_on(slot);
  registered_region made;
  made.core_ = core_;
  made.slot_ = *slot;
  made.bytes_ = bytes;
  made.mapped_ = core_->region_at(*slot).mapped;
  return made;
}

result<registered_region> connection::register_device_region(const device_allocation& memory,
                                                             deadline until) {
  // Each registration comes with a descriptor; that of a handle means nothing.
  unique_fd own(memory.descriptor < 0 ? ::memfd_create("terrace-handle", MFD_CLOEXEC)
                                      : ::fcntl(memory.descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own)
    return fail(errc::bad_request,
                "cannot duplicate the memory's descriptor: " + std::string(std::strerror(errno)));
  auto slot = core_->register_device_region(std::move(own), memory, until);
  if (!slot)
    return pass_on(slot);
  registered_region made;
  made.core_ = core_;
  made.slot_ = *slot;
  made.bytes_ = memory.bytes;
  return made;
}

result<registered_region> connection::register_generations(const region& memory, const std::string& device,
                                                           deadline until, uint32_t events) {
  unique_fd own(::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!own)
    return fail(errc::bad_request,
                "cannot duplicate the memory's descriptor: " + std::string(std::strerror(errno)));
  auto slot = core_->register_generations(std::move(own), memory.size(), device, events, until);
  if (!slot)
    return pass_on(slot);
  registered_region made;
  made.core_ = core_;
  made.slot_ = *slot;
  made.bytes_ = memory.size();
  made.mapped_ = core_->region_at(*slot).mapped;
  return made;
}

result<void> connection::unregister(registered_region region, deadline until) {
  if (region.core_ != core_)
    return fail(errc::bad_request, "expected a region that is registered with this connection");
  region.core_.reset();
  return core_->end_region(region.slot_, until);
}

lease connection::adopt(const lease_id& id) const { return lease(core_->now(), id); }

// ---- submitting ----

template <class T, class Kind, class Build>
result<ticket<T>> connection::submit(const std::shared_ptr<detail::channel>& to, Kind what, Build&& build,
                                     deadline until) {
  auto id = to->submit(what, std::forward<Build>(build), until);
  if (!id)
    return pass_on(id);
  ticket<T> under_way;
  under_way.channel_ = to;
  under_way.id_ = *id;
  return under_way;
}

template <class T, class Kind, class Request>
result<ticket<T>> connection::submit_about(Kind what, const Request& request, uint32_t region, deadline until,
                                           uint32_t progress_region) {
  auto space = core_->space_id_of(request.in);
  if (!space)
    return pass_on(space);
  request_context in{*space, region, milliseconds_left(until), progress_region};
  return submit<T>(
      core_->now(), what, [&](body_builder& body) { return encode(body, request, in); }, until);
}

result<uint32_t> connection::region_id_of(const registered_region* region) const {
  if (!region || region->core_ != core_)
    return fail(errc::bad_request, "expected a region that is registered with this connection");
  return core_->region_at(region->slot_).id;
}

result<uint32_t> connection::region_id_of(const arrivals* progress) const {
  return progress ? region_id_of(&progress->at()) : result<uint32_t>(0U);
}

result<ticket<lookup_result>> connection::submit_lookup(const lookup_request& request, deadline until) {
  return submit_about<lookup_result>(kind::lookup, request, 0, until);
}

result<ticket<lookup_result>> connection::submit_await_lookup(const lookup_id& id, deadline until,
                                                              const request_options& options) {
  request_context in{0, 0, milliseconds_left(until)};
  return submit<lookup_result>(
      core_->now(), kind::await_lookup, [&](body_builder& body) { return encode(body, id, options, in); },
      until);
}

result<ticket<load_result>> connection::submit_load(const load_request& request, deadline until) {
  auto region = region_id_of(request.region);
  if (!region)
    return pass_on(region);
  auto progress = region_id_of(request.progress);
  if (!progress)
    return pass_on(progress);
  auto layers = region_id_of(request.layers ? &request.layers->in->at() : request.region);
  if (!layers)
    return pass_on(layers);
  // The lease determines the space; the space given by the caller is sent as a check if it is open here.
  auto space = core_->space_id_of(request.in);
  if (!space && !request.lease)
    return pass_on(space);
  request_context in{space.value_or(0), *region, milliseconds_left(until), *progress, *layers};
  auto sent = submit<load_result>(
      core_->now(), kind::load, [&](body_builder& body) { return encode(body, request, in); }, until);
  if (sent && request.layers)
    request.layers->in->sent(*request.layers, sent->channel_, sent->id_);
  return sent;
}

result<ticket<prefetch_result>> connection::submit_prefetch(const prefetch_request& request, deadline until) {
  auto progress = region_id_of(request.progress);
  if (!progress)
    return pass_on(progress);
  if (!request.lease && !request.lookup)
    return submit_about<prefetch_result>(kind::prefetch, request, 0, until, *progress);
  request_context in{0, 0, milliseconds_left(until), *progress};
  return submit<prefetch_result>(
      core_->now(), kind::prefetch, [&](body_builder& body) { return encode(body, request, in); }, until);
}

result<ticket<store_result>> connection::submit_store(const store_request& request, deadline until) {
  auto region = region_id_of(request.region);
  if (!region)
    return pass_on(region);
  auto after = region_id_of(request.after ? request.after->in : request.region);
  if (!after)
    return pass_on(after);
  return submit_about<store_result>(kind::store, request, *region, until, *after);
}

result<ticket<reservation>> connection::submit_reserve(const reserve_request& request, deadline until) {
  return submit_about<reservation>(kind::reserve, request, 0, until);
}

result<ticket<store_result>> connection::submit_commit(reservation written, deadline until,
                                                       const request_options& options) {
  if (!written)
    return fail(errc::bad_request, "expected a reservation, got an empty handle");
  request_context in{0, 0, milliseconds_left(until)};
  auto sent = submit<store_result>(
      written.channel_, kind::commit,
      [&](body_builder& body) { return detail::encode_commit(body, written.id_, options, in); }, until);
  if (sent)
    written.id_ = 0; // now owned by the daemon: nothing to abort
  return sent;
}

result<ticket<located_objects>> connection::submit_read_lease(const lease_id& id, chunk_range range,
                                                              deadline until, std::span<const uint8_t> pools,
                                                              earlier_places earlier,
                                                              const request_options& options) {
  request_context in{0, 0, milliseconds_left(until)};
  return submit<located_objects>(
      core_->now(), kind::read_lease,
      [&](body_builder& body) { return encode(body, id, range, pools, earlier, options, in); }, until);
}

// ---- waiting ----

template <class Table, class T, class Read>
auto connection::take(ticket<T>& under_way, deadline until, Read&& read)
    -> result<decltype(read(std::declval<const Table&>()))> {
  if (!under_way)
    return fail(errc::bad_request, "expected a ticket of a request in flight, got an empty one");
  auto got = under_way.channel_->wait(under_way.id_, until);
  if (!got && got.error().code == errc::deadline)
    return pass_on(got); // still in flight
  under_way.id_ = 0;
  if (!got)
    return pass_on(got);
  return detail::read_answer<Table>(*under_way.channel_, *got,
                                    [&](const Table& table, answer&) { return read(table); });
}

result<lookup_result> connection::wait(ticket<lookup_result>& under_way, deadline until) {
  auto read = [&](const wire::LookupAnswer& table) {
    lookup_result found{.requested_chunks = table.requested_chunks(),
                        .found_chunks = table.found_chunks(),
                        .found_tokens = table.found_tokens(),
                        .usable_tokens = table.usable_tokens(),
                        .tiers = std::vector<tier_kind>(table.found_chunks()),
                        .held = {},
                        .first_token = table.first_token(),
                        .missing = detail::decode(table.missing()),
                        .digests = detail::decode_digests(table),
                        .digest_width = table.digest_width(),
                        .recompute_chunks = table.recompute_chunks(),
                        .session = {},
                        .tail_tokens = table.tail_tokens(),
                        .cursors = {},
                        .logits = {}};
    if (table.logits())
      found.logits.assign(table.logits()->begin(), table.logits()->end());
    if (table.cursors())
      found.cursors.assign(table.cursors()->begin(), table.cursors()->end());
    if (table.tiers() && table.found_chunks() > 0)
      std::memcpy(found.tiers.data(), table.tiers()->data(), table.found_chunks());
    if (table.session_digest())
      found.session = {table.session_tokens(),
                       digest::from({table.session_digest()->data(), table.session_digest()->size()}),
                       table.session_digest()->size()};
    if (table.lease())
      found.held = lease(under_way.channel_, protocol::to_lease_id(table.lease()));
    return found;
  };
  if (under_way && under_way.channel_->request_of(under_way.id_) == kind::await_lookup)
    return take<wire::AwaitLookupAnswer>(under_way, until, [&](const wire::AwaitLookupAnswer& table) {
      auto found = read(*table.found());
      found.chunk_tokens = table.chunk_tokens();
      return found;
    });
  return take<wire::LookupAnswer>(under_way, until, read);
}

result<load_result> connection::wait(ticket<load_result>& under_way, deadline until) {
  return take<wire::LoadAnswer>(under_way, until, [](const auto& table) { return detail::decode(table); });
}

result<prefetch_result> connection::wait(ticket<prefetch_result>& under_way, deadline until) {
  return take<wire::PrefetchAnswer>(under_way, until,
                                    [](const auto& table) { return detail::decode(table); });
}

result<store_result> connection::wait(ticket<store_result>& under_way, deadline until) {
  // Stores and commits end alike.
  if (under_way && under_way.channel_->request_of(under_way.id_) == kind::commit)
    return take<wire::CommitAnswer>(under_way, until,
                                    [](const auto& table) { return detail::decode(table); });
  return take<wire::StoreAnswer>(under_way, until, [](const auto& table) { return detail::decode(table); });
}

result<void> connection::map_segments(detail::channel& in, std::span<const location> locations,
                                      deadline until) {
  for (const auto& place : locations) {
    if (place.bytes == 0 || in.mapped()->knows(place.segment))
      continue;
    auto mapped = detail::ask<kind::map_segment>(
        in, until, [&](body_builder& body) { return wire::CreateMapSegment(body, place.segment); },
        [&](const wire::MapSegmentAnswer& table, answer& with) -> result<void> {
          if (with.descriptors.empty())
            return fail(errc::internal, "expected a descriptor with the segment, got none");
          return in.mapped()->map(place.segment, with.descriptors[0], table.bytes(), table.writable());
        });
    if (!mapped)
      return mapped;
  }
  return {};
}

result<located_objects> connection::wait(ticket<located_objects>& under_way, deadline until) {
  auto in = under_way.channel_;
  uint64_t first_token = 0;
  std::optional<missing_object> missing;
  auto places = take<wire::ReadLeaseAnswer>(under_way, until, [&](const auto& table) {
    first_token = table.first_token();
    missing = detail::decode(table.missing());
    std::vector<location> list;
    for (const auto* place : *table.locations())
      list.push_back({place->offset(), place->bytes(), place->segment()});
    return list;
  });
  if (!places)
    return pass_on(places);
  if (auto ok = map_segments(*in, *places, until); !ok)
    return pass_on(ok);
  located_objects located{
      .objects = {}, .mappings = in->mapped(), .first_token = first_token, .missing = missing};
  located.objects.reserve(places->size());
  for (const auto& place : *places) {
    auto bytes = place.bytes == 0 ? result<std::span<uint8_t>>(std::span<uint8_t>())
                                  : in->mapped()->at(place.segment, place.offset, place.bytes, false);
    if (!bytes)
      return pass_on(bytes);
    located.objects.push_back(*bytes);
  }
  return located;
}

result<reservation> connection::wait(ticket<reservation>& under_way, deadline until) {
  reservation made; // from the answer on it aborts itself if anything fails
  auto in = under_way.channel_;
  auto places = take<wire::ReserveAnswer>(under_way, until, [&](const auto& table) {
    made.channel_ = in;
    made.id_ = table.reservation();
    std::vector<location> list;
    for (const auto* place : *table.locations())
      list.push_back({place->offset(), place->bytes(), place->segment()});
    return list;
  });
  if (!places)
    return pass_on(places);
  if (auto ok = map_segments(*in, *places, until); !ok)
    return pass_on(ok);
  made.objects_.reserve(places->size());
  for (const auto& place : *places) {
    auto bytes = place.bytes == 0 ? result<std::span<uint8_t>>(std::span<uint8_t>())
                                  : in->mapped()->at(place.segment, place.offset, place.bytes, true);
    if (!bytes)
      return pass_on(bytes);
    made.objects_.push_back(*bytes);
  }
  return made;
}

void connection::give_up(detail::any_ticket& under_way) {
  if (!under_way)
    return;
  under_way.channel_->post_cancel(under_way.id_);
  detail::any_ticket forgotten(std::move(under_way));
}

result<uint32_t> connection::poll(deadline until, on_signal signals) {
  return core_->now()->poll(until, signals);
}

// ---- calls that wait for their answer ----

template <class T>
result<T> connection::finish(result<ticket<T>> submitted, deadline until) {
  if (!submitted)
    return pass_on(submitted);
  auto done = wait(*submitted, until);
  // The ticket is valid but timed out, and nobody will ask for its answer.
  if (!done)
    give_up(*submitted);
  return done;
}

result<lookup_result> connection::lookup(const lookup_request& request, deadline until) {
  return finish(submit_lookup(request, until), until);
}

result<lookup_result> connection::await_lookup(const lookup_id& id, deadline until,
                                               const request_options& options) {
  return finish(submit_await_lookup(id, until, options), until);
}

result<located_objects> connection::read_lease(const lease_id& id, chunk_range range, deadline until,
                                               std::span<const uint8_t> pools, earlier_places earlier,
                                               const request_options& options) {
  return finish(submit_read_lease(id, range, until, pools, earlier, options), until);
}

result<load_result> connection::load(const load_request& request, deadline until) {
  auto done = finish(submit_load(request, until), until);
  if (request.progress)
    request.progress->end();
  if (request.layers)
    request.layers->in->end(*request.layers, done);
  return done;
}

result<prefetch_result> connection::prefetch(const prefetch_request& request, deadline until) {
  auto done = finish(submit_prefetch(request, until), until);
  if (request.progress)
    request.progress->end();
  return done;
}

result<store_result> connection::store(const store_request& request, deadline until) {
  return finish(submit_store(request, until), until);
}

result<reservation> connection::reserve(const reserve_request& request, deadline until) {
  return finish(submit_reserve(request, until), until);
}

result<store_result> connection::commit(reservation written, deadline until, const request_options& options) {
  return finish(submit_commit(std::move(written), until, options), until);
}

} // namespace terrace::client
