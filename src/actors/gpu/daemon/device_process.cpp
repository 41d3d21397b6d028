#include "actors/gpu/daemon/device_state.hpp"

#include "actors/disk/stall_tick.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace::actors {

namespace {

using gpu::process_verb;
using metrics::device_phase;

constexpr uint64_t exit_tag = 1;
constexpr uint64_t deadline_tag = 2;

result<std::shared_ptr<device_staging>> make_staging(uint64_t bytes, const teardown_ptr& by) {
  std::shared_ptr<device_staging> made(new device_staging, deleted_by{by});
  made->descriptor =
      std::make_shared<unique_fd>(::memfd_create("terrace-device-staging", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!*made->descriptor || ::ftruncate(made->descriptor->get(), static_cast<off_t>(bytes)) != 0)
    return fail(errc::no_space, "no staging memory of " + std::to_string(bytes) +
                                    " bytes (a quarter of connection.staging_bytes)");
  auto memory = mapping::map(made->descriptor->get(), bytes, true);
  if (!memory)
    return tl::unexpected(memory.error());
  made->memory = std::move(*memory);
  made->slot_bytes = bytes / device_staging::slots;
  return made;
}

void fail_imports(device_pointer self, const error& why) {
  for (auto& each : std::exchange(self->state.imports, {}))
    each.reply.fail(why);
}

/// Kills the process. Its pidfd reports its end.
void kill_process(device_pointer self) {
  auto& state = self->state;
  state.now = device_state::phase::ending;
  state.child.kill();
  if (state.child.socket())
    ::shutdown(state.child.socket()->get(), SHUT_RDWR); // ends the operations in the ring
}

void tell_watchers(device_pointer self, bool serves) {
  for (const device_watcher& each : self->state.watchers)
    self->send(each, device_changed_notice{serves});
}

void end_watch(device_state& state, const asked_of_process& asked) {
  if (!asked.watched)
    return;
  state.watch.ended(*asked.watched);
  state.free_tags.push_back(*asked.watched);
}

void fail_questions(device_pointer self, const error& why) {
  auto& state = self->state;
  for (auto& [id, each] : std::exchange(state.asked, {})) {
    end_watch(state, each);
    each.then(why, {});
  }
}

/// The process is being ended, and until then it still has what it has in flight.
void lose_process(device_pointer self, const error& why) {
  auto& state = self->state;
  if (state.now == device_state::phase::absent || state.now == device_state::phase::ending)
    return;
  kill_process(self);
  state.with.probe->failed();
  state.with.probe->enters(device_phase::degraded, why.text);
  state.with.warn(subject(self) + ": " + why.text);
  blame_reads(self);
  quarantine_reads(self); // first, so that what it reads stays held
  state.arenas.lose();
  error gone{errc::gone,
             subject(self) + ": " + why.text +
                 "; its regions are gone. Unregister them, which is answered when nothing accesses "
                 "them any more, and register them again"};
  fail_questions(self, gone);
  fail_imports(self, {why.code, subject(self) + ": " + why.text});
  fail_line(self, gone);
  lose_reads(self, gone);
  tell_watchers(self, false);
}

/// Nothing of the process is left, so nobody accesses its regions.
void on_process_ended(device_pointer self) {
  auto& state = self->state;
  if (state.receiving || state.sending || state.watching_exit)
    return;
  fail_questions(self, no_such_process(self)); // questions to a process that was ended with its last region
  state.socket.reset();
  state.child = {};
  end_arenas(self);
  lose_reads(self, no_such_process(self));
  state.staging.reset();
  state.free_slots.clear();
  auto ended = std::exchange(state.regions, {});
  state.now = device_state::phase::absent;
  state.with.probe->shows_process(0); // before anybody is told
  show_regions(self);
  for (auto& [id, region] : ended)
    for (auto& end : region.ends)
      end.deliver(end_region_answer{});
  go_on(self);
}

void start_process(device_pointer self) {
  auto& state = self->state;
  state.now = device_state::phase::starting;
  ++state.process;
  state.with.probe->started();
  state.with.probe->enters(device_phase::starting);
  auto start = [device = state.with.probe->name(),
                to = caf::actor_cast<caf::strong_actor_ptr>(self)](caf::event_based_actor* starter) {
    child_started notice{std::make_shared<result<gpu::device_child>>(gpu::start_device_child(device))};
    caf::anon_send(caf::actor_cast<caf::actor>(to), std::move(notice));
    starter->quit();
  };
  // A separate thread starts the program, because that blocks until it has begun.
  if (state.with.detached)
    self->system().spawn<caf::detached>(std::move(start));
  else
    self->system().spawn(std::move(start));
}

void watch_exit(device_pointer self) {
  runtime::io_request exit;
  exit.code = runtime::io_code::poll;
  exit.fd = self->state.child.pidfd()->get();
  exit.events = POLLIN;
  self->state.watching_exit = true;
  self->port().submit(std::move(exit), caf::actor_cast<caf::strong_actor_ptr>(self), exit_tag);
}

void end_quietly(device_pointer self) {
  auto& state = self->state;
  state.with.probe->enters(device_phase::idle);
  state.with.log(subject(self) + ": nobody has registered memory of it any more; its process ends");
  kill_process(self);
}

void on_packet_from_process(device_pointer self, const process_packet& packet) {
  auto& state = self->state;
  const auto& message = packet.message;
  auto found = state.asked.find(message.id);
  if (message.verb != process_verb::done || found == state.asked.end()) {
    lose_process(self, {errc::internal, "its process sent something else than an answer"});
    return;
  }
  auto answered = std::move(found->second);
  state.asked.erase(found);
  end_watch(state, answered);
  error failure{message.code, message.code == errc::ok ? std::string() : message.text};
  if (failure.code == errc::gone)
    blame_reads(self); // before its reads are answered
  answered.then(failure, packet);
  // The device is lost, and so is everything in its context.
  if (failure.code == errc::gone)
    lose_process(self, failure);
}

void on_received(device_pointer self, int32_t bytes) {
  auto& state = self->state;
  state.receiving = false;
  if (state.now == device_state::phase::ending) {
    on_process_ended(self);
    return;
  }
  auto packet = state.socket->received(bytes);
  if (!packet)
    return; // it is already ending
  if (!*packet) {
    lose_process(self, {errc::internal, "its process sent " + packet->error().text});
    on_process_ended(self);
    return;
  }
  state.receiving = true;
  on_packet_from_process(self, **packet);
  state.socket->receive();
}

void on_sent(device_pointer self, int32_t bytes) {
  auto& state = self->state;
  state.sending = state.socket->sent(bytes) && state.socket->sends();
  if (state.now == device_state::phase::ending)
    on_process_ended(self);
}

void on_exit(device_pointer self) {
  auto& state = self->state;
  state.watching_exit = false;
  std::string how = state.child.reap();
  if (state.now != device_state::phase::ending)
    lose_process(self, {errc::gone, "its process ended: " + how});
  on_process_ended(self);
}

/// Returns what to call for the stalled questions; nullopt if one of them may not be late, so that the
/// process is killed.
using lateness = std::vector<std::function<void()>>;
std::optional<lateness> lateness_of(device_state& state, const std::vector<uint64_t>& stalled) {
  lateness all;
  for (auto& [id, each] : state.asked) {
    if (!each.watched || !std::binary_search(stalled.begin(), stalled.end(), *each.watched))
      continue;
    if (!each.late)
      return std::nullopt;
    all.push_back(each.late);
  }
  return all;
}

void on_deadline_tick(device_pointer self) {
  auto& state = self->state;
  state.ticking = false;
  auto late = lateness_of(state, state.watch.tick());
  if (!late)
    lose_process(self, {errc::gone, "its process has not answered for " +
                                        std::to_string(state.with.deadline.count()) +
                                        " ms (gpu.deadline), so it is killed"});
  else
    for (const auto& tell : *late)
      tell();
  keep_ticking(self, state.watch, state.ticking, state.with.deadline, deadline_tag);
}

} // namespace

std::string subject(device_pointer self) { return "device " + self->state.with.probe->name(); }

void ask_process(device_pointer self, process_packet what,
                 std::function<void(const error&, const process_packet&)> then, patience with,
                 std::function<void()> late) {
  auto& state = self->state;
  uint64_t id = state.next_id++;
  what.message.id = id;
  asked_of_process asked{std::move(then), std::nullopt, std::move(late)};
  if (with == patience::until_deadline) {
    if (state.free_tags.empty())
      state.free_tags.push_back(state.tags++);
    asked.watched = state.free_tags.back();
    state.free_tags.pop_back();
    state.watch.started(*asked.watched, 0);
  }
  state.asked.emplace(id, std::move(asked));
  state.socket->send(std::move(what));
  state.sending = true;
  keep_ticking(self, state.watch, state.ticking, state.with.deadline, deadline_tag);
}

void go_on(device_pointer self) {
  auto& state = self->state;
  if (state.now == device_state::phase::absent && !state.imports.empty()) {
    start_process(self);
  } else if (state.now == device_state::phase::ready) {
    while (!state.imports.empty()) {
      waiting_import next = std::move(state.imports.front());
      state.imports.pop_front();
      send_import(self, std::move(next));
    }
    // Until a late read is over, the process could not end either, and the next one would have to wait for
    // that.
    if (state.reads.late == 0 && std::all_of(state.regions.begin(), state.regions.end(),
                                             [](const auto& one) { return one.second.peer; }))
      end_quietly(self);
  }
}

void on_watch(device_pointer self, const watch_device_notice& notice) {
  auto& watchers = self->state.watchers;
  assert(std::find(watchers.begin(), watchers.end(), notice.who) == watchers.end()); // each watches once
  watchers.push_back(notice.who);
  if (self->state.now == device_state::phase::ready)
    self->send(notice.who, device_changed_notice{true});
}

void on_child_started(device_pointer self, const child_started& notice) {
  auto& state = self->state;
  auto staging = make_staging(state.with.staging_bytes, state.with.teardown);
  if (!*notice.child || !staging) {
    error why = *notice.child ? staging.error() : notice.child->error();
    state.now = device_state::phase::absent; // its destructor kills the process
    state.with.probe->failed();
    state.with.probe->enters(device_phase::degraded, why.text);
    state.with.warn(subject(self) + ": " + why.text);
    fail_imports(self, why);
    return;
  }
  state.child = std::move(**notice.child);
  state.staging = *staging;
  state.with.probe->shows_process(state.child.pid());
  state.socket = std::make_unique<packet_socket>(state.child.socket(), self->port(),
                                                 caf::actor_cast<caf::strong_actor_ptr>(self));
  watch_exit(self);
  state.receiving = true;
  state.socket->receive();
  process_packet begin;
  begin.message.verb = process_verb::begin;
  begin.message.bytes = state.staging->memory.size();
  begin.descriptor = state.staging->descriptor;
  ask_process(self, std::move(begin), [self](const error& failure, const process_packet& answer) {
    auto& of = self->state;
    if (of.now != device_state::phase::starting)
      return;
    if (failure.code != errc::ok) {
      lose_process(self, failure);
      return;
    }
    of.now = device_state::phase::ready;
    for (size_t slot = 0; slot < device_staging::slots; ++slot)
      of.free_slots.push_back(slot);
    of.with.probe->enters(device_phase::ready, answer.message.text);
    of.with.log(subject(self) + " is ready: " + answer.message.text);
    of.arenas.serve();
    pin_more(self);
    tell_watchers(self, true); // first, so that a tier asks for its memory while the first region is mapped
    go_on(self);
  });
}

void on_device_io(device_pointer self, const runtime::io_done& done) {
  if (done.tag == packet_socket::receive_tag)
    on_received(self, done.result);
  else if (done.tag == packet_socket::send_tag)
    on_sent(self, done.result);
  else if (done.tag == exit_tag)
    on_exit(self);
  else if (done.tag == deadline_tag)
    on_deadline_tick(self);
}

error no_such_process(device_pointer self) {
  return {errc::gone, subject(self) +
                          ": the process that mapped the region has ended; unregister it and register it "
                          "again"};
}

// ---- the actor ----

namespace {

device_interface::behavior_type device_behavior(device_pointer self,
                                                const std::shared_ptr<device_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  begin_reads(self);
  return {
      [self](copy_request& request) { return on_copy(self, request); },
      [self](const import_region_request& request) { return on_import(self, request); },
      [self](const share_region_request& request) { return on_share(self, request); },
      [self](const watch_device_notice& notice) { on_watch(self, notice); },
      [self](direct_read_request& request) { return on_direct_read(self, request); },
      [self](const drop_region_notice& notice) { on_drop(self, notice); },
      [self](const end_region_request& request) { return on_end_region(self, request.region); },
      [self](const add_memory& added) { on_add_memory(self, added); },
      [self](const forget_memory& gone) { return on_forget_memory(self, gone); },
      [self](const child_started& notice) { on_child_started(self, notice); },
      [self](const runtime::io_done& done) { on_device_io(self, done); },
  };
}

} // namespace

device_region::~device_region() {
  assert(id_ != 0); // reported once
  caf::anon_send(device_, drop_region_notice{id_, opened()});
}

device_actor spawn_device(caf::actor_system& system, const runtime::home& home, device_arguments arguments) {
  return runtime::spawn_homed(system, home, device_behavior,
                              std::make_shared<device_arguments>(std::move(arguments)));
}

} // namespace terrace::actors
