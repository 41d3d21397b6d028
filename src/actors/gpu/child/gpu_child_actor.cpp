#include "actors/gpu/child/gpu_child_actor.hpp"

#include "actors/gpu/child/stream_actor.hpp"
#include "actors/gpu/packet_socket.hpp"
#include "gpu/device.hpp"
#include "runtime/io_port.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <unordered_map>

namespace terrace::actors {

/// The thread that opens the reader of files sends this.
struct reader_opened {
  uint64_t id = 0; ///< id of the request
  uint64_t region = 0;
  std::shared_ptr<result<std::shared_ptr<gpu::disk_reader>>> reader;
};
/// A thread of the reader sends this when a batch is over.
struct reader_over {
  uint64_t id = 0;
  gpu::read_batch how; ///< also used for a file that was added
};

namespace {

using gpu::process_verb;

struct link_state {
  const char* name = "link";
  link_arguments with;
  std::unique_ptr<packet_socket> socket;
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<gpu::memory> staging;
  std::unordered_map<uint64_t, std::shared_ptr<gpu::memory>> regions;
  std::unordered_map<uint64_t, std::shared_ptr<gpu::attached_page>> pages;
  std::unordered_map<uint64_t, std::shared_ptr<const mapping>>
      arenas; ///< arenas that are mapped, and pinned piece by piece as regions
  stream_actor loads, stores;
  std::shared_ptr<gpu::disk_reader> reader; ///< reader of files; null: none
  bool opening_reader = false;
};

using link_interface = stream_owner::extend<caf::reacts_to<reader_opened>, caf::reacts_to<reader_over>,
                                            caf::reacts_to<runtime::io_done>>;
using link_pointer = caf::stateful_actor<link_state, runtime::homed<link_interface::base>>*;

void end_process(link_pointer self, int code) {
  self->state.with.end(code);
  self->quit(caf::exit_reason::user_shutdown); // in a test, whose process goes on
}

void answer_done(link_pointer self, uint64_t id, const error& failure, std::string text = {},
                 std::shared_ptr<unique_fd> descriptor = nullptr) {
  process_packet packet;
  packet.descriptor = std::move(descriptor);
  packet.message.verb = process_verb::done;
  packet.message.id = id;
  packet.message.code = failure.code;
  packet.message.text = failure.code == errc::ok ? std::move(text) : failure.text;
  self->state.socket->send(std::move(packet));
}

result<std::string> begin_device(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  if (state.device || !packet.descriptor)
    return fail(errc::bad_request, "a second beginning, or one without staging memory");
  auto opened = state.with.open(state.with.device);
  if (!opened)
    return tl::unexpected(opened.error());
  auto pages = mapping::map(packet.descriptor->get(), packet.message.bytes, true);
  if (!pages)
    return tl::unexpected(pages.error());
  auto pinned = opened->opened->pin(std::make_shared<const mapping>(std::move(*pages)));
  if (!pinned)
    return tl::unexpected(pinned.error());
  auto owner = caf::actor_cast<stream_owner>(self);
  auto loads = spawn_stream(self->system(), state.with.loads, opened->opened, gpu::direction::load, owner);
  if (!loads)
    return tl::unexpected(loads.error());
  auto stores = spawn_stream(self->system(), state.with.stores, opened->opened, gpu::direction::store, owner);
  if (!stores)
    return tl::unexpected(stores.error());
  state.device = std::move(opened->opened);
  state.staging = std::move(*pinned);
  state.loads = *loads;
  state.stores = *stores;
  self->link_to(state.loads); // they end together
  self->link_to(state.stores);
  return std::move(opened->description);
}

error import_region(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  gpu::memory_handle handle;
  handle.bytes = packet.message.bytes;
  if (packet.message.verb == process_verb::import_handle) {
    handle.kind = gpu::memory_handle::kind_t::ipc;
    handle.ipc = packet.message.handle;
  } else if (packet.descriptor) {
    handle.descriptor = std::move(*packet.descriptor);
  } else {
    return {errc::bad_request, "memory without a descriptor"};
  }
  auto memory = state.device->import(std::move(handle));
  if (!memory)
    return memory.error();
  state.regions[packet.message.region] = std::move(*memory);
  return {};
}

error import_page(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  if (!packet.descriptor)
    return {errc::bad_request, "no descriptor of a page of generations came along"};
  auto page = gpu::generation_page::open(std::move(*packet.descriptor));
  if (!page)
    return page.error();
  auto shared = std::make_shared<const gpu::generation_page>(std::move(*page));
  const uint32_t events = packet.message.signals;
  if (events * (sizeof(uint32_t) + gpu::event_handle_bytes) > shared->memory().size())
    return {errc::bad_request, "a page that has no room for its events"};
  auto attached = events == 0 ? state.device->attach(std::move(shared))
                              : state.device->attach_with_events(std::move(shared), events);
  if (!attached)
    return attached.error();
  state.pages[packet.message.region] = std::move(*attached);
  return {};
}

error allocate_region(link_pointer self, const gpu::process_message& wanted) {
  auto memory = self->state.device->allocate(wanted.bytes);
  if (!memory)
    return memory.error();
  self->state.regions[wanted.region] = std::move(*memory);
  return {};
}

void share_region(link_pointer self, const gpu::process_message& wanted) {
  auto region = self->state.regions.find(wanted.region);
  if (region == self->state.regions.end()) {
    answer_done(self, wanted.id, {errc::not_found, "a region that is not mapped"});
    return;
  }
  auto handle = region->second->share();
  if (!handle)
    answer_done(self, wanted.id, handle.error());
  else if (handle->kind != gpu::memory_handle::kind_t::descriptor)
    answer_done(self, wanted.id, {errc::unsupported, "the device does not share memory by descriptors"});
  else
    answer_done(self, wanted.id, {}, {}, std::make_shared<unique_fd>(std::move(handle->descriptor)));
}

error map_arena(link_pointer self, const process_packet& packet) {
  if (!packet.descriptor)
    return {errc::bad_request, "an arena without a descriptor"};
  auto pages = mapping::map(packet.descriptor->get(), packet.message.bytes, false);
  if (!pages)
    return pages.error();
  self->state.arenas[packet.message.region] = std::make_shared<const mapping>(std::move(*pages));
  return {};
}

error pin_arena(link_pointer self, const gpu::process_message& wanted) {
  auto& state = self->state;
  auto arena = state.arenas.find(wanted.arena);
  if (arena == state.arenas.end() || wanted.offset > arena->second->size() ||
      wanted.bytes > arena->second->size() - wanted.offset)
    return {errc::not_found, "a part of an arena that is not mapped"};
  auto pinned = state.device->pin_for_reading(arena->second, wanted.offset, wanted.bytes);
  if (!pinned)
    return pinned.error();
  state.regions[wanted.region] = std::move(*pinned);
  return {};
}

error start_copy(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  auto region = state.regions.find(packet.message.region);
  auto arena = state.regions.find(packet.message.arena);
  if (region == state.regions.end() || (packet.message.arena != 0 && arena == state.regions.end()))
    return {errc::not_found, "a copy of a region that is not mapped"};
  stream_copy copy{packet.message.id,
                   region->second,
                   packet.message.arena != 0 ? arena->second : state.staging,
                   std::move(packet.message.copies),
                   nullptr,
                   packet.message.signal,
                   packet.message.signals};
  if (packet.message.signals != 0) {
    auto page = state.pages.find(packet.message.page);
    if (page == state.pages.end())
      return {errc::not_found, "a signal in a page that is not mapped"};
    copy.page = page->second;
  }
  self->send(packet.message.verb == process_verb::load ? state.loads : state.stores, std::move(copy));
  return {};
}

// ---- files ----

/// Runs on a thread of its own, because the library may take a second, and copies continue meanwhile.
error open_reads(link_pointer self, const gpu::process_message& wanted) {
  auto& state = self->state;
  if (state.reader || std::exchange(state.opening_reader, true))
    return {errc::bad_request, "a second reader of files"};
  self->system().spawn<caf::detached>(
      [device = state.device, bytes = wanted.bytes, id = wanted.id, region = wanted.region,
       to = caf::actor_cast<caf::actor>(self)](caf::event_based_actor* opener) {
        using opened = result<std::shared_ptr<gpu::disk_reader>>;
        reader_opened notice{id, region, std::make_shared<opened>(device->open_disk_reader(bytes))};
        caf::anon_send(to, std::move(notice));
        opener->quit();
      });
  return {};
}

void on_reader_opened(link_pointer self, const reader_opened& notice) {
  auto& state = self->state;
  state.opening_reader = false;
  if (*notice.reader) {
    state.reader = **notice.reader;
    state.regions[notice.region] = state.reader->staging();
  }
  answer_done(self, notice.id, *notice.reader ? error{} : notice.reader->error());
}

/// Returns the function that a thread of the reader calls to send to this actor.
auto over_of(link_pointer self, uint64_t id) {
  return [id, to = caf::actor_cast<caf::actor>(self)](gpu::read_batch how) {
    caf::anon_send(to, reader_over{id, std::move(how)});
  };
}

error add_file(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  if (!state.reader || !packet.descriptor)
    return {errc::bad_request, "a file without a reader or a descriptor"};
  state.reader->add_file(packet.message.region, std::move(*packet.descriptor),
                         [over = over_of(self, packet.message.id)](const result<void>& how) {
                           over({how ? error{} : how.error(), 0, 0, {}});
                         });
  return {};
}

error read_files(link_pointer self, gpu::process_message& wanted) {
  auto& state = self->state;
  if (!state.reader)
    return {errc::bad_request, "a read without a reader"};
  state.reader->read(wanted.offset, std::move(wanted.extents), over_of(self, wanted.id));
  return {};
}

void on_reader_over(link_pointer self, const reader_over& over) {
  process_packet packet;
  packet.message.verb = process_verb::done;
  packet.message.id = over.id;
  packet.message.code = over.how.failure.code;
  packet.message.text = over.how.failure.code == errc::ok ? over.how.why : over.how.failure.text;
  packet.message.bytes = over.how.good;
  packet.message.offset = over.how.unread;
  self->state.socket->send(std::move(packet));
}

void on_packet(link_pointer self, process_packet& packet) {
  auto& state = self->state;
  auto id = packet.message.id;
  if (packet.message.verb == process_verb::begin) {
    auto text = begin_device(self, packet);
    answer_done(self, id, text ? error{} : text.error(), text ? *text : std::string());
    return;
  }
  if (!state.device) {
    answer_done(self, id, {errc::bad_request, "the device is not open"});
    return;
  }
  error failure;
  switch (packet.message.verb) {
    case process_verb::import_handle:
    case process_verb::import_memory:
      failure = import_region(self, packet);
      answer_done(self, id, failure);
      return;
    case process_verb::import_page:
      failure = import_page(self, packet);
      answer_done(self, id, failure);
      return;
    case process_verb::allocate:
      failure = allocate_region(self, packet.message);
      answer_done(self, id, failure);
      return;
    case process_verb::share: share_region(self, packet.message); return;
    case process_verb::map_memory: answer_done(self, id, map_arena(self, packet)); return;
    case process_verb::pin_memory: answer_done(self, id, pin_arena(self, packet.message)); return;
    case process_verb::forget:
      state.regions.erase(packet.message.region);
      state.pages.erase(packet.message.region);
      state.arenas.erase(packet.message.region);
      answer_done(self, id, {});
      return;
    case process_verb::load:
    case process_verb::store: failure = start_copy(self, packet); break;
    case process_verb::open_reads: failure = open_reads(self, packet.message); break;
    case process_verb::add_file: failure = add_file(self, packet); break;
    case process_verb::read: failure = read_files(self, packet.message); break;
    default: failure = {errc::bad_request, "an answer came instead of a request"};
  }
  if (failure.code != errc::ok)
    answer_done(self, id, failure);
}

void on_link_io(link_pointer self, const runtime::io_done& done) {
  auto& socket = *self->state.socket;
  if (done.tag == packet_socket::send_tag) {
    if (!socket.sent(done.result))
      end_process(self, 0);
    return;
  }
  auto packet = socket.received(done.result);
  if (!packet || !*packet) {
    end_process(self, packet ? 2 : 0);
    return;
  }
  on_packet(self, **packet);
  socket.receive();
}

link_interface::behavior_type link_behavior(link_pointer self, const std::shared_ptr<link_arguments>& with) {
  auto& state = self->state;
  state.with = std::move(*with);
  auto socket = std::make_shared<unique_fd>(std::move(state.with.socket));
  state.socket = std::make_unique<packet_socket>(std::move(socket), self->port(),
                                                 caf::actor_cast<caf::strong_actor_ptr>(self));
  state.socket->receive();
  return {
      [self](const stream_over& over) { answer_done(self, over.id, over.failure); },
      [self](const reader_opened& notice) { on_reader_opened(self, notice); },
      [self](const reader_over& over) { on_reader_over(self, over); },
      [self](const runtime::io_done& done) { on_link_io(self, done); },
  };
}

} // namespace

caf::actor spawn_link(caf::actor_system& system, link_arguments with) {
  runtime::home at = with.messages;
  return caf::actor_cast<caf::actor>(
      runtime::spawn_homed(system, at, link_behavior, std::make_shared<link_arguments>(std::move(with))));
}

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::reader_opened)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::reader_over)
