#include "gpu/cuda/cuda_engine.hpp"

#include "gpu/kernels/copy_runs.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace terrace::gpu {

namespace {

/// The device begins only when a call has taken all of its members, so the first calls of a part are short.
constexpr size_t members_of_first_call = 32, members_per_call = 4096;

/// The end of this many bytes is reported while later steps continue, so that the owner has room for more of them.
constexpr uint64_t bytes_of_a_fence = 8 << 20;

/// A copy engine takes 4 us (H100) for each piece from one place on the device to another, however small the piece is.
constexpr uint64_t kernel_inside_below_bytes = 1 << 20;

/// The number of the kernel's blocks for each run: few across the bus, which is slower than any of them.
constexpr unsigned blocks_across_bus = 32, blocks_inside = 256;

} // namespace

result<void> cuda_shared::load_kernel() {
  auto image = kernel_image();
  if (image.empty())
    return fail(errc::unsupported, "built without NVIDIA's toolkit, so without kernels");
  const auto& api = context->api();
  const void* code = image.data();
  if (auto ok = context->call("cuModuleLoadData", api.ModuleLoadData, &module, code); !ok)
    return ok;
  return context->call("cuModuleGetFunction", api.ModuleGetFunction, &kernel, module, copy_kernel_name);
}

cuda_shared::~cuda_shared() {
  if (module)
    context->raw(context->api().ModuleUnload, module);
}

cuda_engine::~cuda_engine() {
  // The driver does not call host functions of a lost context, but it does not say whether one is still pending. The
  // memory that they point to is therefore leaked until the process exits, which it should do soon.
  if (lost_ || !stream_.synchronize() || !reports_.synchronize()) {
    static auto& left = *new std::vector<std::unique_ptr<fence>>;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    for (auto& one : fences_)
      left.push_back(std::move(one));
  }
}

result<void> cuda_engine::check() {
  if (lost_)
    return fail(errc::gone, "the device is lost");
  auto alive = stream_.idle();
  if (alive || alive.error().code != errc::gone)
    return {};
  lost_ = true;
  return tl::unexpected(alive.error());
}

result<void> cuda_engine::issue(const step& wanted) {
  if (!wanted.part) // steps before a wait must not be reported behind it
    if (auto told = flush(); !told)
      return told;
  auto started = lost_ ? fail(errc::gone, "the device is lost") : start(wanted);
  if (!started && started.error().code == errc::gone) {
    lost_ = true;
    return started;
  }
  // The ticket is added after a failure, too, because some copies may have been started.
  untold_.push_back(wanted.ticket);
  untold_bytes_ += wanted.part ? bytes_of(*wanted.part) : 0;
  if (untold_bytes_ >= bytes_of_a_fence)
    if (auto told = flush(); !told)
      return told;
  return started;
}

result<void> cuda_engine::flush() {
  while (!fences_.empty() && fences_.front()->over.load(std::memory_order_acquire))
    fences_.pop_front();
  if (untold_.empty() || lost_)
    return {};
  fences_.push_back(std::make_unique<fence>());
  fences_.back()->completions = completions_;
  fences_.back()->tickets = std::exchange(untold_, {});
  untold_bytes_ = 0;
  auto fenced = issued_.record(stream_);
  if (fenced)
    fenced = issued_.block(reports_);
  if (fenced)
    fenced = home().call(
        "cuLaunchHostFunc", api().LaunchHostFunc, reports_.get(),
        +[](void* argument) {
          auto& self = *static_cast<fence*>(argument);
          self.completions->push(self.tickets);
          self.over.store(true, std::memory_order_release);
        },
        static_cast<void*>(fences_.back().get()));
  if (!fenced) {
    // Without a fence nobody would know when the memory is free again.
    lost_ = true;
    return fail(errc::gone, "cannot follow what was started: " + fenced.error().text);
  }
  return {};
}

result<void> cuda_engine::start(const step& wanted) {
  const auto* page = static_cast<const cuda_page*>(wanted.page);
  if (!wanted.part)
    return page->await(stream_, *wanted.await);
  auto* region = dynamic_cast<const cuda_memory*>(wanted.region);
  auto* object = dynamic_cast<const cuda_memory*>(wanted.object);
  if (!region || !object || !region->reachable_from(home()) || !object->reachable_from(home()))
    return fail(errc::bad_request, "memory of another device");
  std::vector<run> runs;
  runs.reserve(wanted.part->copies.size());
  for (const auto& one : wanted.part->copies) {
    run made{object->address() + one.object_offset,
             region->address() + one.region_offset,
             one.object_stride,
             one.region_stride,
             one.bytes,
             one.count};
    if (wanted.way == direction::load) {
      std::swap(made.destination, made.source);
      std::swap(made.destination_stride, made.source_stride);
    }
    if (made.count > 1 && made.destination_stride == made.bytes && made.source_stride == made.bytes) {
      made.bytes *= made.count; // the pieces are contiguous and become a single one
      made.count = 1;
    }
    runs.push_back(made);
  }
  if (auto copied = copy(runs, region->on_device() && object->on_device()); !copied || !wanted.part->signal)
    return copied;
  return page->signal(stream_, *wanted.part->signal);
}

template <class Smaller>
result<void> cuda_engine::copy_divided(const std::vector<run>& runs, unsigned blocks_max, Smaller&& smaller) {
  std::vector<run> large, rest;
  std::partition_copy(runs.begin(), runs.end(), std::back_inserter(rest), std::back_inserter(large), smaller);
  if (!rest.empty())
    if (auto copied = copy_by_kernel(rest, blocks_max); !copied)
      return copied;
  return copy_by_engines(large);
}

result<void> cuda_engine::copy(const std::vector<run>& runs, bool inside_device) {
  switch (shared_->options.method) {
    case copy_method::batch: return copy_batch_of(runs);
    case copy_method::planes: return copy_planes(runs);
    case copy_method::single: return copy_single(runs);
    case copy_method::kernel: return copy_by_kernel(runs, blocks_across_bus);
    case copy_method::automatic: break;
  }
  if (!shared_->kernel)
    return copy_by_engines(runs);
  if (inside_device)
    return copy_divided(runs, blocks_inside,
                        [](const run& one) { return one.bytes < kernel_inside_below_bytes; });
  return copy_divided(runs, blocks_across_bus,
                      [this](const run& one) { return one.bytes < shared_->options.kernel_below_bytes; });
}

result<void> cuda_engine::copy_batch_of(const std::vector<run>& runs) {
  std::vector<cuda::device_pointer> destinations, sources;
  std::vector<size_t> bytes;
  cuda::copy_attributes attributes;
  size_t begin = 0, most = members_of_first_call;
  auto flush = [&]() -> result<void> {
    if (bytes.empty())
      return {};
    auto done = home().call("cuMemcpyBatchAsync", api().MemcpyBatchAsync, destinations.data(), sources.data(),
                            bytes.data(), bytes.size(), &attributes, &begin, size_t{1}, stream_.get());
    destinations.clear();
    sources.clear();
    bytes.clear();
    return done;
  };
  for (const auto& one : runs)
    for (uint64_t i = 0; i < one.count; ++i) {
      destinations.push_back(one.destination + i * one.destination_stride);
      sources.push_back(one.source + i * one.source_stride);
      bytes.push_back(one.bytes);
      if (bytes.size() == most) {
        if (auto done = flush(); !done)
          return done;
        most = std::min(most * 2, members_per_call);
      }
    }
  return flush();
}

bool cuda_engine::is_plane(const run& one) {
  return gpu::is_plane(one.count, one.source_stride, one.destination_stride);
}

result<void> cuda_engine::copy_plane(const run& one) {
  cuda::copy_2d plane;
  plane.source = one.source;
  plane.source_pitch = one.source_stride;
  plane.destination = one.destination;
  plane.destination_pitch = one.destination_stride;
  plane.width = one.bytes;
  plane.height = one.count;
  return home().call("cuMemcpy2DAsync", api().Memcpy2DAsync, &plane, stream_.get());
}

result<void> cuda_engine::copy_by_engines(const std::vector<run>& runs) {
  std::vector<run> pieces;
  for (const auto& one : runs)
    if (!is_plane(one))
      pieces.push_back(one);
    else if (auto copied = copy_plane(one); !copied)
      return copied;
  return api().MemcpyBatchAsync ? copy_batch_of(pieces) : copy_single(pieces);
}

result<void> cuda_engine::copy_planes(const std::vector<run>& runs) {
  for (const auto& one : runs)
    if (auto copied = is_plane(one) ? copy_plane(one) : copy_single({one}); !copied)
      return copied;
  return {};
}

result<void> cuda_engine::copy_single(const std::vector<run>& runs) {
  for (const auto& one : runs)
    for (uint64_t i = 0; i < one.count; ++i)
      if (auto copied =
              home().call("cuMemcpyAsync", api().MemcpyAsync, one.destination + i * one.destination_stride,
                          one.source + i * one.source_stride, one.bytes, stream_.get());
          !copied)
        return copied;
  return {};
}

result<void> cuda_engine::copy_by_kernel(const std::vector<run>& runs, unsigned blocks_max) {
  for (size_t begin = 0; begin < runs.size(); begin += copy_batch::runs_max) {
    copy_batch batch;
    uint64_t units = 0;
    for (size_t i = begin; i < std::min(runs.size(), begin + copy_batch::runs_max); ++i) {
      const auto& one = runs[i];
      batch.run[batch.runs] = {one.destination,        one.source,        one.bytes,
                               one.destination_stride, one.source_stride, one.count};
      units = std::max(units, one.bytes / unit_bytes(batch.run[batch.runs]) * one.count);
      ++batch.runs;
    }
    constexpr unsigned threads = 256; // a row of blocks per run
    auto blocks = static_cast<unsigned>(std::clamp<uint64_t>((units + threads - 1) / threads, 1, blocks_max));
    void* parameters[] = {&batch};
    auto launched =
        home().call("cuLaunchKernel", api().LaunchKernel, shared_->kernel, blocks, batch.runs, 1u, threads,
                    1u, 1u, 0u, stream_.get(), &parameters[0], static_cast<void**>(nullptr));
    if (!launched)
      return launched;
  }
  return {};
}

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
