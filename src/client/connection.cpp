// Connecting to the daemon, and sending requests. waiting.cpp has their answers.
#include "base/copy_memory.hpp"
#include "client/client.hpp"
#include "client/core.hpp"
#include "client/segments.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

namespace terrace::client {

using detail::ask;
using detail::body_builder;
using detail::encode;
using detail::milliseconds_left;
using detail::pass_on;
using detail::request_context;
using protocol::kind;

// ---- the connection ----

detail::core_owner::~core_owner() {
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
  made.core_ = core_.shared();
  made.slot_ = *slot;
  made.bytes_ = bytes;
  made.mapped_ = core_->region_at(*slot).mapped;
  return made;
}

result<registered_region> connection::register_device_region(const device_allocation& memory,
                                                             deadline until) {
  // Each registration sends a descriptor. If the memory comes by handle, the daemon ignores the descriptor.
  unique_fd own(memory.descriptor < 0 ? ::memfd_create("terrace-handle", MFD_CLOEXEC)
                                      : ::fcntl(memory.descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own)
    return fail(errc::bad_request,
                "cannot duplicate the memory's descriptor: " + std::string(std::strerror(errno)));
  auto slot = core_->register_device_region(std::move(own), memory, until);
  if (!slot)
    return pass_on(slot);
  registered_region made;
  made.core_ = core_.shared();
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
  made.core_ = core_.shared();
  made.slot_ = *slot;
  made.bytes_ = memory.size();
  made.mapped_ = core_->region_at(*slot).mapped;
  return made;
}

lease connection::adopt(const lease_id& id) const { return lease(core_->now(), id); }

async_requests connection::async() { return async_requests(core_.shared()); }
client::admin connection::admin() const { return client::admin(core_.shared()); }

// ---- requests without tickets: their answers hold no resources ----

result<bool> connection::cancel_lookup(const lookup_id& id, deadline until) {
  return ask<kind::cancel>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateCancel(body, 0, body.CreateVector(id.bytes.data(), id.bytes.size()));
      },
      [](const wire::CancelAnswer& table) { return table.found(); });
}

result<void> connection::end_inference(const inference_end& ended, deadline until) {
  return ask<kind::end_inference>(
      *core_->now(), until, [&](body_builder& body) { return encode(body, ended); },
      [](const wire::EndInferenceAnswer&) {});
}

void async_requests::end_inference(const inference_end& ended) {
  core_->now()->post(kind::end_inference, [&](body_builder& body) { return encode(body, ended); });
}

result<bell> connection::bell(deadline until) { return core_->ring_with(until); }

// Copies from the mapped arena, on the caller's thread.

result<uint64_t> connection::load_under_lease(const lease& held, chunk_range range,
                                              std::span<const std::span<uint8_t>> into, deadline until,
                                              std::span<const uint8_t> pools, earlier_places earlier) {
  lease_parts parts(range, into, earlier);
  while (parts.more()) {
    auto located = read_lease(held.id(), parts.range(), until, pools, parts.earlier());
    if (!located)
      return pass_on(located);
    if (auto copied = parts.copy(located->objects); !copied)
      return pass_on(copied);
  }
  return parts.bytes();
}

result<void> lease_parts::copy(std::span<const std::span<const uint8_t>> objects) {
  size_t came = objects.size();
  more_ = came != 0 && per_chunk_ != 0 && came % per_chunk_ == 0 && came < left_.size();
  auto some = copy_objects(objects, more_ || came == 0 ? left_.first(came) : left_);
  if (!some)
    return pass_on(some);
  bytes_ += *some;
  if (!more_)
    return {};
  left_ = left_.subspan(came);
  auto chunks = static_cast<uint32_t>(came / per_chunk_);
  range_ = {range_.first + chunks, range_.count - chunks};
  earlier_ = earlier_places::given_up;
  return {};
}

result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into) {
  if (from.size() != into.size())
    return fail(errc::bad_request, "expected one destination an object (" + std::to_string(from.size()) +
                                       "), got " + std::to_string(into.size()));
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].size() != into[i].size())
      return fail(errc::bad_request, "expected a destination of " + std::to_string(from[i].size()) +
                                         " bytes for object " + std::to_string(i) + ", got " +
                                         std::to_string(into[i].size()));
  uint64_t bytes = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    copy_memory(into[i].data(), from[i].data(), from[i].size());
    bytes += from[i].size();
  }
  return bytes;
}

// ---- submitting ----

template <class T, class Kind, class Build>
result<ticket<T>> async_requests::submit(const std::shared_ptr<detail::channel>& to, Kind kind, Build&& build,
                                         deadline until) {
  auto id = to->submit(kind, std::forward<Build>(build), until);
  if (!id)
    return pass_on(id);
  ticket<T> under_way;
  under_way.channel_ = to;
  under_way.id_ = *id;
  return under_way;
}

template <class T, class Kind, class Request>
result<ticket<T>> async_requests::submit_about(Kind kind, const Request& request, uint32_t region,
                                               deadline until, uint32_t progress_region) {
  auto space = core_->space_id_of(request.in);
  if (!space)
    return pass_on(space);
  request_context context{*space, region, milliseconds_left(until), progress_region};
  return submit<T>(
      core_->now(), kind, [&](body_builder& body) { return encode(body, request, context); }, until);
}

result<uint32_t> async_requests::region_id_of(const registered_region* region) const {
  if (!region || region->core_ != core_)
    return fail(errc::bad_request, "expected a region that is registered with this connection");
  return core_->region_at(region->slot_).id;
}

result<uint32_t> async_requests::region_id_of(const arrivals* progress) const {
  return progress ? region_id_of(&progress->at()) : result<uint32_t>(0U);
}

result<ticket<lookup_result>> async_requests::lookup(const lookup_request& request, deadline until) {
  return submit_about<lookup_result>(kind::lookup, request, 0, until);
}

result<ticket<lookup_result>> async_requests::await_lookup(const lookup_id& id, deadline until,
                                                           const request_options& options) {
  request_context context{0, 0, milliseconds_left(until)};
  return submit<lookup_result>(
      core_->now(), kind::await_lookup,
      [&](body_builder& body) { return encode(body, id, options, context); }, until);
}

result<ticket<announced_chunks>> async_requests::announce(const announcement& request, deadline until) {
  return submit_about<announced_chunks>(kind::announce, request, 0, until);
}

result<ticket<announced_chunks>> async_requests::follow(const lookup_id& name, uint32_t chunks,
                                                        deadline until, const request_options& options) {
  const uint32_t left = milliseconds_left(until);
  return submit<announced_chunks>(
      core_->now(), kind::follow,
      [&](body_builder& body) {
        auto id = body.CreateVector(name.bytes.data(), name.bytes.size());
        return wire::CreateFollow(body, id, chunks, left, detail::encode(body, options));
      },
      until);
}

result<ticket<load_result>> async_requests::load(const load_request& request, deadline until) {
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
  request_context context{space.value_or(0), *region, milliseconds_left(until), *progress, *layers};
  auto sent = submit<load_result>(
      core_->now(), kind::load, [&](body_builder& body) { return encode(body, request, context); }, until);
  if (sent && request.layers)
    request.layers->in->sent(*request.layers, sent->channel_, sent->id_);
  return sent;
}

result<ticket<prefetch_result>> async_requests::prefetch(const prefetch_request& request, deadline until) {
  auto progress = region_id_of(request.progress);
  if (!progress)
    return pass_on(progress);
  if (!request.lease && !request.lookup)
    return submit_about<prefetch_result>(kind::prefetch, request, 0, until, *progress);
  request_context context{0, 0, milliseconds_left(until), *progress};
  return submit<prefetch_result>(
      core_->now(), kind::prefetch, [&](body_builder& body) { return encode(body, request, context); },
      until);
}

result<ticket<store_result>> async_requests::store(const store_request& request, deadline until) {
  auto region = region_id_of(request.region);
  if (!region)
    return pass_on(region);
  auto after = region_id_of(request.after ? request.after->in : request.region);
  if (!after)
    return pass_on(after);
  return submit_about<store_result>(kind::store, request, *region, until, *after);
}

result<ticket<reservation>> async_requests::reserve(const reserve_request& request, deadline until) {
  return submit_about<reservation>(kind::reserve, request, 0, until);
}

result<ticket<store_result>> async_requests::commit(reservation written, deadline until,
                                                    const request_options& options) {
  if (!written)
    return fail(errc::bad_request, "expected a reservation, got an empty handle");
  request_context context{0, 0, milliseconds_left(until)};
  auto sent = submit<store_result>(
      written.channel_, kind::commit,
      [&](body_builder& body) { return detail::encode_commit(body, written.id_, options, context); }, until);
  if (sent)
    written.id_ = 0; // the daemon owns it now, so there is nothing to abort
  return sent;
}

result<ticket<located_objects>> async_requests::read_lease(const lease_id& id, chunk_range range,
                                                           deadline until, std::span<const uint8_t> pools,
                                                           earlier_places earlier,
                                                           const request_options& options) {
  request_context context{0, 0, milliseconds_left(until)};
  return submit<located_objects>(
      core_->now(), kind::read_lease,
      [&](body_builder& body) { return encode(body, id, range, pools, earlier, options, context); }, until);
}

} // namespace terrace::client
