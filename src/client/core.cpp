#include "client/core.hpp"

#include "client/conversions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace terrace::client::detail {

using namespace std::chrono;
using protocol::kind;

result<daemon_info> core::shake_hands(channel& with, const hello_request& hello, deadline until) {
  auto info = ask<kind::hello>(
      with, until, [&](body_builder& body) { return encode(body, hello); },
      [](const wire::HelloAnswer& table) { return decode(table); });
  if (info && info->protocol_version != protocol::version)
    return fail(errc::unsupported, "expected a daemon of protocol version " +
                                       std::to_string(protocol::version) + ", got one of version " +
                                       std::to_string(info->protocol_version));
  if (!info && with.refusal()) // the daemon runs, and does not want this client now
    return fail(*with.refusal(), info.error().text);
  if (info)
    with.set_credits(info->credit_requests, info->credit_bytes, info->frame_bytes_max);
  return info;
}

result<void> core::start(unique_fd socket, deadline until) {
  ask_for_buffers(socket.get(), options_.socket_buffer_bytes);
  auto fresh = std::make_shared<channel>(std::move(socket), options_.busy_poll);

  // Reports only those connections as finished whose memory nothing here refers to.
  std::vector<uint64_t> resumes;
  for (const auto& item : ended_)
    if (item.past.use_count() == 1 && item.past->mapped().use_count() == 1 &&
        resumes.size() < protocol::resumes_max)
      resumes.push_back(item.connection);
  auto info = shake_hands(*fresh, {options_.name, resumes, info_.boot, options_.observes}, until);
  if (!info)
    return tl::unexpected<error>(info.error());
  for (auto& entry : spaces_)
    if (entry.known != 0) // the number may mean another space now
      entry = {.spec = {}, .id = 0, .fingerprint = {}, .pools = {}};
    else if (entry.id != 0)
      if (auto ok = open(*fresh, entry, until); !ok)
        return ok;
  for (auto& entry : regions_)
    if (entry.memory)
      if (auto ok = announce(*fresh, entry, until); !ok)
        return ok;
  if (bell_) {
    auto rung = bell_of(*fresh, until);
    if (!rung)
      return tl::unexpected<error>(rung.error());
    if (!bell_->becomes(*rung))
      return fail(errc::busy, "cannot duplicate the bell's descriptor: " + std::string(std::strerror(errno)));
  }

  if (info->boot != info_.boot)
    ended_.clear(); // their daemon has ended, and its quarantine with it
  std::erase_if(ended_, [&](const auto& item) {
    return std::find(resumes.begin(), resumes.end(), item.connection) != resumes.end();
  });
  channel_ = std::move(fresh);
  started_ = true;
  info_ = std::move(*info);
  failures_ = 0;
  return {};
}

// ---- the bell ----

result<unique_fd> core::bell_of(channel& at, deadline until) {
  return ask<kind::bell>(
      at, until, [](body_builder& body) { return wire::CreateBell(body); },
      [](const wire::BellAnswer&, answer& with) -> result<unique_fd> {
        if (with.descriptors.empty())
          return fail(errc::internal, "expected a descriptor with the bell, got none");
        return std::move(with.descriptors[0]);
      });
}

result<bell> core::ring_with(deadline until) {
  if (!bell_) {
    auto rung = bell_of(*channel_, until);
    if (!rung)
      return tl::unexpected<error>(rung.error());
    bell_.emplace(std::move(*rung));
  }
  return *bell_;
}

void core::back_off() {
  auto most = std::min(options_.backoff_most, options_.backoff_least * (1U << std::min(failures_, 16U)));
  ++failures_;
  // Full jitter, so that clients that lost the same daemon do not reconnect at the same time.
  std::uniform_int_distribution<int64_t> pick(0, duration_cast<microseconds>(most).count());
  next_attempt_ = steady_clock::now() + microseconds(pick(random_));
}

result<bool> core::reconnect(deadline until) {
  if (channel_ && channel_->alive())
    return true;
  if (options_.path.empty())
    return fail(errc::unsupported, "expected the path of the daemon's socket in the options, got none");
  if (steady_clock::now() < next_attempt_)
    return fail(errc::gone, "the daemon is gone; the next attempt to reach it is not due yet");
  auto boot_before = info_.boot;
  if (started_) {
    auto reason = channel_->state().error().text;
    channel_->end(reason);
    ended_.push_back({std::move(channel_), static_cast<uint64_t>(info_.connection)});
    channel_ = std::make_shared<channel>(unique_fd());
    channel_->end(reason);
    started_ = false;
  }
  auto socket = connect_socket(options_.path, until);
  auto ok = socket ? start(std::move(*socket), until) : result<void>(tl::unexpected<error>(socket.error()));
  if (!ok) {
    back_off();
    return tl::unexpected<error>(ok.error());
  }
  return info_.boot == boot_before;
}

// ---- spaces ----

result<void> core::open(channel& at, space_entry& entry, deadline until) {
  return ask<kind::open_space>(
      at, until, [&](body_builder& body) { return encode(body, entry.spec, entry.known); },
      [&](const wire::OpenSpaceAnswer& table) {
        entry.id = table.space();
        if (entry.fingerprint == digest{})
          entry.fingerprint = digest::from({table.fingerprint()->data(), table.fingerprint()->size()});
        entry.pools = decode(table.pools());
      });
}

result<space> core::open_space(const space_spec& spec, deadline until) {
  return enter({.spec = spec, .id = 0, .fingerprint = {}, .pools = {}}, until);
}

result<space> core::open_space(uint32_t number, deadline until) {
  return enter({.spec = {}, .id = 0, .fingerprint = {}, .pools = {}, .known = number}, until);
}

result<space> core::enter(space_entry entry, deadline until) {
  if (auto ok = open(*channel_, entry, until); !ok)
    return tl::unexpected<error>(ok.error());
  auto known =
      std::find_if(spaces_.begin(), spaces_.end(), [&](const auto& other) { return other.id == entry.id; });
  if (known == spaces_.end()) // takes the place of a closed space
    known = std::find_if(spaces_.begin(), spaces_.end(), [](const auto& other) { return other.id == 0; });
  auto slot = static_cast<uint32_t>(known - spaces_.begin());
  if (known == spaces_.end())
    spaces_.push_back(entry);
  else
    *known = entry; // opened twice, with equal rank and defaults
  return space{slot, entry.fingerprint};
}

result<void> core::close_space(const space& opened, deadline until) {
  auto id = space_id_of(opened);
  if (!id)
    return tl::unexpected<error>(id.error());
  auto closed = ask<kind::close_space>(
      *channel_, until, [&](body_builder& body) { return wire::CreateCloseSpace(body, *id); },
      [](const wire::CloseSpaceAnswer&) {});
  if (closed)
    spaces_[opened.slot] = {.spec = {}, .id = 0, .fingerprint = {}, .pools = {}};
  return closed;
}

result<uint32_t> core::space_id_of(const space& opened) const {
  if (opened.slot < spaces_.size() && spaces_[opened.slot].id != 0 &&
      spaces_[opened.slot].fingerprint == opened.fingerprint)
    return spaces_[opened.slot].id;
  return fail(errc::bad_request,
              "expected a space that this connection opened, got slot " + std::to_string(opened.slot));
}

std::span<const open_pool> core::pools_of(const space& opened) const {
  return opened.slot < spaces_.size() ? std::span<const open_pool>(spaces_[opened.slot].pools)
                                      : std::span<const open_pool>();
}

// ---- regions ----

result<void> core::announce(channel& at, region_entry& entry, deadline until) {
  int memory = entry.memory.get();
  return ask<kind::register_region>(
      at, until,
      [&](body_builder& body) {
        if (entry.kind == wire::RegionKind::memfd)
          return wire::CreateRegisterRegion(body, entry.kind, entry.bytes);
        auto device = body.CreateString(entry.device);
        auto handle = entry.kind == wire::RegionKind::cuda_ipc
                          ? body.CreateVector(entry.handle.data(), entry.handle.size())
                          : flatbuffers::Offset<flatbuffers::Vector<uint8_t>>();
        return wire::CreateRegisterRegion(body, entry.kind, entry.bytes, device, handle, entry.events);
      },
      [&](const wire::RegisterRegionAnswer& table) {
        entry.id = table.region();
        entry.mapped = table.mapped();
      },
      {&memory, 1});
}

result<uint32_t> core::register_region(unique_fd memory, uint64_t bytes, deadline until) {
  region_entry entry;
  entry.memory = std::move(memory);
  entry.bytes = bytes;
  return add_region(std::move(entry), until);
}

result<uint32_t> core::register_device_region(unique_fd memory, const device_allocation& what,
                                              deadline until) {
  region_entry entry;
  entry.memory = std::move(memory);
  entry.kind = what.descriptor < 0 ? wire::RegionKind::cuda_ipc : wire::RegionKind::device_memory;
  entry.device = what.device;
  entry.handle = what.handle;
  entry.bytes = what.bytes;
  return add_region(std::move(entry), until);
}

result<uint32_t> core::register_generations(unique_fd memory, uint64_t bytes, const std::string& device,
                                            uint32_t events, deadline until) {
  region_entry entry;
  entry.memory = std::move(memory);
  entry.kind = wire::RegionKind::generations;
  entry.device = device;
  entry.events = events;
  entry.bytes = bytes;
  return add_region(std::move(entry), until);
}

result<uint32_t> core::add_region(region_entry entry, deadline until) {
  if (auto ok = announce(*channel_, entry, until); !ok)
    return tl::unexpected<error>(ok.error());
  auto free = std::find_if(regions_.begin(), regions_.end(), [](const auto& other) { return !other.memory; });
  auto slot = static_cast<uint32_t>(free - regions_.begin());
  if (free == regions_.end())
    regions_.push_back(std::move(entry));
  else
    *free = std::move(entry);
  return slot;
}

void core::unregister_region(uint32_t slot) {
  auto& entry = regions_[slot];
  channel_->post(kind::unregister_region,
                 [&](body_builder& body) { return wire::CreateUnregisterRegion(body, entry.id); });
  entry = {};
}

result<void> core::end_region(uint32_t slot, deadline until) {
  auto id = regions_[slot].id;
  regions_[slot] = {};
  return ask<kind::unregister_region>(
      *channel_, until, [&](body_builder& body) { return wire::CreateUnregisterRegion(body, id); },
      [](const wire::UnregisterRegionAnswer&) {});
}

} // namespace terrace::client::detail

namespace terrace::client {

void lease::release() {
  if (channel_ && !id_.empty())
    channel_->post_release(id_);
  id_ = {};
  channel_.reset();
}

void reservation::abort() {
  if (channel_ && id_ != 0)
    channel_->post_abort(id_);
  id_ = 0;
  objects_.clear();
  channel_.reset();
}

void registered_region::drop() {
  if (core_)
    core_->unregister_region(slot_);
  core_.reset();
}

result<void> registered_region::unregister(deadline until) {
  if (!core_)
    return fail(errc::bad_request, "expected a region that is registered, got an empty handle");
  return std::exchange(core_, nullptr)->end_region(slot_, until);
}

std::shared_ptr<detail::channel> registered_region::channel() const { return core_ ? core_->now() : nullptr; }

namespace detail {

any_ticket::~any_ticket() {
  if (channel_ && id_ != 0)
    channel_->forget(id_);
}

bool any_ticket::ready() const { return channel_ && id_ != 0 && channel_->ready(id_); }

} // namespace detail

} // namespace terrace::client
