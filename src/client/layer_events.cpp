#include "client/layer_events.hpp"

#include "base/reached.hpp"
#include "gpu/cuda/context.hpp"
#include "gpu/cuda/stream.hpp"
#include "protocol/descriptors.hpp"

#include <atomic>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace terrace::client {

namespace {

/// The handles are at the end of the page.
constexpr uint64_t handle_bytes = sizeof(cuda::ipc_event_handle);
static_assert(protocol::region_event_bytes == sizeof(uint32_t) + handle_bytes);

} // namespace

/// The counters of a ring tell which events were recorded. The last counter of each slot has an event that
/// nobody uses.
struct layer_events::parts {
  struct slot {
    std::atomic<uint32_t> ended = 0;          ///< the value of the last load that has ended
    std::optional<layered_load> passing = {}; ///< load after whose waits `passed` was recorded
    cuda::event passed;
  };

  parts(connection& actor, layer_events_options wanted)
      : daemon(actor), options(std::move(wanted)), slots(options.loads) {}

  uint32_t events() const { return options.loads * (options.layers + 1); }
  const cuda::event& event_of(const layered_load& load, uint32_t layer) const {
    return opened[load.slot * (options.layers + 1) + layer];
  }
  result<void> open(deadline until);
  void close_events();
  result<void> see_passes();

  connection& daemon;
  const layer_events_options options;
  std::shared_ptr<const cuda::context> context;
  region memory;
  registered_region page;
  /// While it is held, no later connection of this process reports this one as unused.
  std::shared_ptr<detail::channel> opened_at;
  std::vector<cuda::event> opened; ///< closed before the page is unregistered
  std::vector<slot> slots;
  std::unique_ptr<layer_ring> ring;
};

layer_events::layer_events(std::unique_ptr<parts> made) : parts_(std::move(made)) {}
layer_events::~layer_events() = default;

uint32_t layer_events::layers() const { return parts_->options.layers; }

result<void> layer_events::parts::open(deadline until) {
  auto registered = daemon.register_generations(memory, options.device, until, events());
  if (!registered)
    return tl::unexpected(registered.error());
  page = std::move(*registered);
  opened_at = page.channel();
  const uint8_t* handle = memory.data() + memory.size() - events() * handle_bytes;
  for (; opened.size() < events(); handle += handle_bytes) {
    cuda::ipc_event_handle copy;
    std::memcpy(&copy, handle, handle_bytes);
    auto event = cuda::event::open(context, copy);
    if (!event) {
      close_events();
      return tl::unexpected(event.error());
    }
    opened.push_back(std::move(*event));
  }
  return {};
}

void layer_events::parts::close_events() {
  opened.clear();
  opened_at.reset();
}

/// Errors: the driver's.
result<void> layer_events::parts::see_passes() {
  for (slot& one : slots) {
    auto passed = one.passing ? one.passed.done() : false;
    if (!passed)
      return tl::unexpected(passed.error());
    if (*passed)
      ring->pass(*std::exchange(one.passing, std::nullopt));
  }
  return {};
}

result<std::unique_ptr<layer_events>>
layer_events::make(connection& daemon, const layer_events_options& options, deadline until) {
  if (options.loads < layer_ring::loads_min || options.layers == 0 ||
      options.loads > protocol::region_events_max / (uint64_t{options.layers} + 1))
    return fail(errc::bad_request, "expected at least " + std::to_string(layer_ring::loads_min) +
                                       " loads of at least one layer, and at most " +
                                       std::to_string(protocol::region_events_max) +
                                       " events, one for each layer of a load and one more for the load");
  auto device = cuda::locate(options.device, options.driver);
  if (!device)
    return tl::unexpected(device.error());
  auto context = cuda::context::retain(device->by, device->properties.ordinal);
  if (!context)
    return tl::unexpected(context.error());
  auto made = std::make_unique<parts>(daemon, options);
  made->context = *context;
  for (parts::slot& one : made->slots) {
    auto event = cuda::event::make(*context);
    if (!event)
      return tl::unexpected(event.error());
    one.passed = std::move(*event);
  }
  auto memory = region::create("layer-events", made->events() * protocol::region_event_bytes);
  if (!memory)
    return tl::unexpected(memory.error());
  made->memory = std::move(*memory);
  auto ring = layer_ring::make(made->memory, made->page, {.loads = options.loads, .layers = options.layers});
  if (!ring)
    return tl::unexpected(ring.error());
  made->ring = std::move(*ring);
  if (auto opened = made->open(until); !opened)
    return tl::unexpected(opened.error());
  return std::unique_ptr<layer_events>(new layer_events(std::move(made)));
}

result<layered_load> layer_events::begin() {
  parts& all = *parts_;
  if (!all.opened_at || all.opened_at != all.page.channel())
    return fail(errc::gone, "the page of these events was unregistered, or registered again: restart them");
  if (auto seen = all.see_passes(); !seen)
    return tl::unexpected(seen.error());
  return all.ring->begin();
}

result<void> layer_events::wait(const layered_load& load, uint32_t layer, void* stream,
                                deadline until) const {
  const parts& all = *parts_;
  assert(load.in == all.ring.get() && layer < all.options.layers);
  if (!all.ring->wait(load, layer, until))
    return fail(errc::deadline, "layer " + std::to_string(layer) + " of the load was not recorded in time");
  // The events of an ended load were recorded long ago, or never will be: they may belong to a process that
  // has ended.
  if (reached(all.slots[load.slot].ended.load(std::memory_order_acquire), load.value))
    return {};
  const auto& context = *all.context;
  return context.call("cuStreamWaitEvent", context.api().StreamWaitEvent,
                      static_cast<cuda::stream_handle>(stream), all.event_of(load, layer).get(), 0U);
}

result<void> layer_events::pass(const layered_load& load, void* stream) {
  parts& all = *parts_;
  parts::slot& one = all.slots[load.slot];
  const auto& context = *all.context;
  auto recorded = context.call("cuEventRecord", context.api().EventRecord, one.passed.get(),
                               static_cast<cuda::stream_handle>(stream));
  if (recorded)
    one.passing = load;
  return recorded;
}

void layer_events::pass(const layered_load& load) { parts_->ring->pass(load); }

void layer_events::end(const layered_load& load, errc answer) {
  // Stored before the waiting thread is woken.
  parts_->slots[load.slot].ended.store(load.value, std::memory_order_release);
  parts_->ring->end(load, answer);
}

result<void> layer_events::close(deadline until) {
  parts& all = *parts_;
  all.close_events();
  if (!all.page)
    return {};
  return all.page.unregister(until);
}

result<void> layer_events::restart(deadline until) {
  parts& all = *parts_;
  if (auto seen = all.see_passes(); !seen)
    return seen;
  for (uint32_t number = 0; number < all.slots.size(); ++number)
    if (all.slots[number].passing)
      return fail(errc::busy, "slot " + std::to_string(number) +
                                  ": its stream has not passed the waits for its events, and if the GPU's "
                                  "process has ended before their bytes arrived, it never will");
  // If the connection was lost, there is nothing to unregister, or only the page of the next one.
  if (auto closed = close(until); !closed && closed.error().code != errc::gone)
    return closed;
  if (auto opened = all.open(until); !opened)
    return opened;
  all.ring->restart();
  return {};
}

} // namespace terrace::client
