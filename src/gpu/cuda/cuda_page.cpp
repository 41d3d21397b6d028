#include "gpu/cuda/cuda_page.hpp"

#include <cassert>
#include <cstring>

namespace terrace::gpu {

static_assert(sizeof(cuda::ipc_event_handle) == event_handle_bytes);

result<void> cuda_counters::signal(const cuda::stream& on, generation next) const {
  const auto& home = *on.home();
  return home.call("cuStreamWriteValue32", home.api().StreamWriteValue32, on.get(),
                   registration_.address() + next.slot * sizeof(uint32_t), next.value,
                   cuda::write_value_default);
}

result<void> cuda_counters::await(const cuda::stream& on, generation wanted) const {
  const auto& home = *on.home();
  return home.call("cuStreamWaitValue32", home.api().StreamWaitValue32, on.get(),
                   registration_.address() + wanted.slot * sizeof(uint32_t), wanted.value,
                   cuda::wait_value_geq);
}

result<std::shared_ptr<cuda_events>> cuda_events::make(const std::shared_ptr<const cuda::context>& context,
                                                       std::shared_ptr<const generation_page> page,
                                                       uint32_t events) {
  const mapping& memory = page->memory();
  assert(events * (sizeof(uint32_t) + event_handle_bytes) <= memory.size());
  std::byte* handle = memory.data() + memory.size() - events * event_handle_bytes;
  std::vector<cuda::event> made;
  for (; made.size() < events; handle += event_handle_bytes) {
    auto event = cuda::event::make_shared(context);
    if (!event)
      return tl::unexpected(event.error());
    auto shared = event->share();
    if (!shared)
      return tl::unexpected(shared.error());
    std::memcpy(handle, &*shared, event_handle_bytes);
    made.push_back(std::move(*event));
  }
  return std::shared_ptr<cuda_events>(new cuda_events(std::move(page), std::move(made)));
}

/// The event is recorded before the generation is written. A stream that waits for an event that was not
/// recorded does not wait, or waits only for the event's previous record.
result<void> cuda_events::signal(const cuda::stream& on, generation next) const {
  if (next.slot >= events_.size())
    return fail(errc::bad_request, "generation " + std::to_string(next.slot) + " of a page with " +
                                       std::to_string(events_.size()) + " events");
  if (auto recorded = events_[next.slot].record(on); !recorded)
    return recorded;
  page().write(next);
  return {};
}

result<void> cuda_events::await(const cuda::stream&, generation) const {
  return fail(errc::unsupported, "a stream cannot wait for a generation that a processor stores");
}

} // namespace terrace::gpu
