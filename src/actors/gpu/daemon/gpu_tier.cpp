#include "actors/gpu/daemon/gpu_tier.hpp"

#include "base/printable.hpp"
#include "index/object_header.hpp"
#include "runtime/answer.hpp"
#include "transfer/arena_contents.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <map>

namespace terrace::actors {

namespace {

/// The arena as another device's process has mapped it.
struct peer_arena {
  device_memory_ptr memory; ///< null: not mapped yet
  bool asked = false;       ///< the mapping has been asked for
};

struct gpu_tier_state {
  const char* name = "gpu tier";
  gpu_tier_arguments with;
  tier_actor tier;
  device_actor device;
  device_memory_ptr arena;                   ///< arena of the present process; null: none
  arena_contents contents;                   ///< contents of that arena
  std::map<caf::actor_id, peer_arena> peers; ///< other devices that read the arena
};

using gpu_tier_pointer = gpu_tier_actor::stateful_pointer<gpu_tier_state>;

std::string subject(gpu_tier_pointer self) {
  const auto& with = self->state.with;
  return "the GPU tier of group " + with.group + " on device " + with.device;
}

// ---- the arena ----

void refuse_arena(gpu_tier_pointer self, const error& why) {
  auto& with = self->state.with;
  with.service->stops(why.text);
  with.probe->degraded(true);
  with.warn(subject(self) + " is off: " + why.text);
}

/// From now on nothing of the lost arena is found. `contents` tells apart what was held or being written.
void lose_arena(gpu_tier_pointer self) {
  auto& state = self->state;
  state.contents.clear();
  state.peers.clear();
  if (!std::exchange(state.arena, nullptr))
    return;
  refuse_arena(self, {errc::gone, "the device's process has ended, and with it what the tier had; it begins "
                                  "again when a client registers memory of the device"});
  self->request(state.tier, caf::infinite, clear_request{})
      .then([](const clear_answer&) {}, [](const caf::error&) {}); // the daemon is shutting down
}

void take_arena(gpu_tier_pointer self, const import_region_answer& made) {
  auto& state = self->state;
  auto& with = state.with;
  if (made.failure.code == errc::gone)
    return; // the process has ended meanwhile, and the next one reports itself
  if (made.failure.code != errc::ok) {
    refuse_arena(self,
                 {made.failure.code, "its arena of " + readable_bytes(with.bytes) +
                                         " (gpu.tier_bytes) could not be allocated: " + made.failure.text});
    return;
  }
  state.arena = made.memory;
  state.contents.clear();
  with.service->serves();
  with.probe->degraded(false);
  with.log(subject(self) + " serves, with " + readable_bytes(with.bytes));
}

void on_device_changed(gpu_tier_pointer self, const device_changed_notice& notice) {
  auto& state = self->state;
  lose_arena(self);
  if (!notice.serves)
    return;
  import_region_request wanted;
  wanted.bytes = state.with.bytes;
  wanted.own = true;
  self->request(state.device, caf::infinite, wanted)
      .then([self](const import_region_answer& made) { take_arena(self, made); },
            [](const caf::error&) {}); // the daemon is shutting down
}

void on_serve_tier(gpu_tier_pointer self, const serve_tier_notice& notice) {
  auto& state = self->state;
  state.tier = notice.tier;
  self->request(state.with.devices, caf::infinite, open_device_request{state.with.device, true})
      .then(
          [self](const open_device_answer& opened) {
            if (opened.failure.code != errc::ok) {
              refuse_arena(self, opened.failure);
              return;
            }
            self->state.device = opened.device;
            self->state.with.service->opened(opened.device);
            self->send(opened.device, watch_device_notice{caf::actor_cast<device_watcher>(self)});
          },
          [](const caf::error&) {}); // the daemon is shutting down
}

// ---- between host memory and the arena ----

/// Returns a copy that is contiguous in the arena, which the device's copies see as a region.
copy_request copy_of(gpu_tier_pointer self, const moved_objects& moved, copy_direction direction) {
  const device_memory_ptr& arena = self->state.arena;
  copy_request copy;
  copy.direction = direction;
  copy.outside = {nullptr, -1, self->state.with.bytes, arena, arena.get()};
  std::vector<region_run> runs;
  std::vector<uint64_t> sizes;
  for (const moved_object& object : moved.objects) {
    copy.objects.push_back({object.memory + object_header_bytes, sizes.size()});
    runs.push_back({object.place.offset + object_header_bytes, object.place.payload_bytes, 0, 1});
    sizes.push_back(object.place.payload_bytes);
  }
  auto made = scatter_gather::make(runs, {}, sizes, self->state.with.bytes);
  assert(made); // the tier's allocator has exactly these bytes
  copy.runs = std::make_shared<const scatter_gather>(std::move(*made));
  copy.context = moved.context;
  copy.owners = moved.owners;
  return copy;
}

template <class Then>
void ask_copy(gpu_tier_pointer self, copy_request copy, Then then) {
  self->request(self->state.device, caf::infinite, std::move(copy))
      .then([then](const copy_answer& done) mutable { then(done.failure); },
            [then](const caf::error&) mutable {
              then(error{errc::gone, "the device's actor has ended"});
            });
}

move_answer all_are(const moved_objects& moved, move_outcome outcome) {
  move_answer answer;
  answer.outcomes.assign(moved.objects.size(), outcome);
  return answer;
}

/// Reads objects; those that the arena does not have fail individually.
caf::result<move_answer> on_read(gpu_tier_pointer self, read_request& request) {
  auto& state = self->state;
  auto outcomes = all_are(request, move_outcome::failed);
  read_request there;
  there.context = request.context;
  there.owners = std::move(request.owners);
  std::vector<size_t> which;
  for (size_t i = 0; state.arena && i < request.objects.size(); ++i)
    if (const moved_object& object = request.objects[i];
        state.contents.has(object.place.id, object.place.offset)) {
      there.objects.push_back(object);
      which.push_back(i);
    }
  if (which.empty())
    return outcomes;
  auto reply = make_answer<move_answer>(self);
  auto promise = reply.promise();
  ask_copy(self, copy_of(self, there, copy_direction::into_arena),
           [reply, outcomes, which, context = there.context](const error& failure) mutable {
             if (auto ended = why_ended(context, "read"); failure.code != errc::ok && ended.code != errc::ok)
               outcomes.failure = ended;
             if (failure.code == errc::ok)
               for (size_t i : which)
                 outcomes.outcomes[i] = move_outcome::done;
             reply.deliver(std::move(outcomes));
           });
  return promise;
}

caf::result<move_answer> on_write(gpu_tier_pointer self, const write_request& request) {
  auto& state = self->state;
  if (!state.arena)
    return all_are(request, move_outcome::away);
  std::vector<object_place> places;
  for (const moved_object& object : request.objects) {
    state.contents.begin_write(object.place);
    places.push_back(object.place);
  }
  auto reply = make_answer<move_answer>(self);
  auto promise = reply.promise();
  ask_copy(self, copy_of(self, request, copy_direction::out_of_arena),
           [self, reply, places, memory = state.arena](const error& failure) mutable {
             bool done = failure.code == errc::ok && memory == self->state.arena;
             if (done)
               for (const object_place& place : places)
                 self->state.contents.written(place);
             move_answer answer;
             answer.outcomes.assign(places.size(), done ? move_outcome::done : move_outcome::away);
             reply.deliver(std::move(answer));
           });
  return promise;
}

// ---- on devices ----

void end_asking(gpu_tier_pointer self, const device_actor& device, const error& failure) {
  auto& state = self->state;
  state.peers[device.id()].asked = false;
  if (failure.code == errc::ok || failure.code == errc::gone || failure.code == errc::busy)
    return; // the next load asks again if it has to
  state.with.service->refuses(device);
  state.with.log(subject(self) + " is not read by another device: " + failure.text);
}

void ask_peer(gpu_tier_pointer self, const device_actor& device) {
  auto& state = self->state;
  state.peers[device.id()].asked = true;
  auto arena = state.arena;
  auto mapped = [self, device, arena](const import_region_answer& made) {
    if (arena != self->state.arena)
      return; // a later arena is asked for separately
    self->state.peers[device.id()].memory = made.memory;
    end_asking(self, device, made.failure);
  };
  self->request(state.device, caf::infinite, share_region_request{arena})
      .then(
          [self, device, arena, mapped](const share_region_answer& shared) {
            if (arena != self->state.arena)
              return;
            if (shared.failure.code != errc::ok) {
              end_asking(self, device, shared.failure);
              return;
            }
            import_region_request wanted;
            wanted.descriptor = shared.descriptor;
            wanted.bytes = self->state.with.bytes;
            wanted.peer = true;
            self->request(device, caf::infinite, wanted).then(mapped, [](const caf::error&) {
            }); // it has ended
          },
          [](const caf::error&) {}); // the daemon is shutting down
}

/// Returns the arena as the region's device has mapped it. Null: not mapped, or not yet; the load then goes
/// through host memory.
device_memory_ptr arena_for(gpu_tier_pointer self, const device_region& region) {
  auto& state = self->state;
  if (!state.arena || state.with.service->is_near(region))
    return state.arena;
  peer_arena& peer = state.peers[region.device().id()];
  if (peer.memory && region_of(*peer.memory).process() == region.process())
    return peer.memory;
  if (!peer.asked)
    ask_peer(self, region.device());
  return nullptr;
}

caf::result<copy_answer> on_device_load(gpu_tier_pointer self, device_load_request& request) {
  auto& state = self->state;
  const auto& objects = request.copy.objects;
  assert(objects.size() == request.ids.size());
  const auto& region = region_of(*request.copy.outside.device);
  device_memory_ptr arena = arena_for(self, region);
  bool all = arena != nullptr;
  for (size_t i = 0; all && i < objects.size(); ++i)
    all = state.contents.has(request.ids[i], objects[i].at - object_header_bytes);
  if (!all)
    return copy_answer{{errc::not_found, subject(self) + " has lost an object"}, 0, {}};
  request.copy.arena = std::move(arena);
  return self->delegate(region.device(), std::move(request.copy));
}

gpu_tier_actor::behavior_type gpu_tier_behavior(gpu_tier_pointer self,
                                                const std::shared_ptr<gpu_tier_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  return {
      [self](const serve_tier_notice& notice) { on_serve_tier(self, notice); },
      [self](const device_changed_notice& notice) { on_device_changed(self, notice); },
      [self](read_request& request) { return on_read(self, request); },
      [self](const write_request& request) { return on_write(self, request); },
      [self](device_load_request& request) { return on_device_load(self, request); },
      [](register_memory) {}, // the device's process does not map host memory
      [](const add_memory&) {},
      [](const forget_memory&) { return retire_answer{}; },
      [](const close_mover_request&) { return close_mover_answer{}; },
  };
}

} // namespace

gpu_tier_actor spawn_gpu_tier(caf::actor_system& system, gpu_tier_arguments arguments) {
  return system.spawn(gpu_tier_behavior, std::make_shared<gpu_tier_arguments>(std::move(arguments)));
}

std::string device_tier_service::reason() const {
  std::lock_guard lock(mutex_);
  return why_;
}

std::string device_tier_service::notice() const {
  if (reads() || !reason().empty())
    return {};
  return "it begins when a client registers memory of its device";
}

bool device_tier_service::reaches(const device_memory& region) const {
  std::lock_guard lock(mutex_);
  return !refused_.contains(region_of(region).device().id());
}

void device_tier_service::refuses(const device_actor& device) {
  std::lock_guard lock(mutex_);
  refused_.insert(device.id());
}

void device_tier_service::serves() {
  {
    std::lock_guard lock(mutex_);
    refused_.clear(); // refusals of the previous arena
    why_.clear();
  }
  serves_.store(true, std::memory_order_release);
}

void device_tier_service::stops(std::string why) {
  serves_.store(false, std::memory_order_release);
  std::lock_guard lock(mutex_);
  why_ = std::move(why);
}

} // namespace terrace::actors
