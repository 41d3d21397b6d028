#include "client/engine_device.hpp"

#include "gpu/cuda/context.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/kernels/copy_runs.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <algorithm>
#include <utility>

namespace terrace::client {

namespace {

cuda::stream_handle stream_of(void* stream) { return static_cast<cuda::stream_handle>(stream); }

/// Each run of a launch gets one row of at most `blocks_max` blocks.
constexpr unsigned threads_per_block = 256, blocks_max = 64;

} // namespace

struct engine_device::parts {
  std::shared_ptr<const cuda::context> context;
  uint64_t kernel_below_bytes = 0;
  cuda::module_handle module = nullptr;
  cuda::function_handle kernel = nullptr;
  cuda::registration page;
  uint64_t page_bytes = 0;

  ~parts() {
    if (module != nullptr)
      context->raw(context->api().ModuleUnload, module);
  }
};

engine_device::engine_device(std::unique_ptr<parts> made) : parts_(std::move(made)) {}
engine_device::~engine_device() = default;

result<std::unique_ptr<engine_device>> engine_device::open(const engine_device_options& options) {
  auto device = cuda::locate(options.device, options.driver);
  if (!device)
    return tl::unexpected(device.error());
  if (!device->properties.stream_memory_ops)
    return fail(errc::unsupported, device->properties.name + " has no stream memory operations");
  auto context = cuda::context::retain(device->by, device->properties.ordinal);
  if (!context)
    return tl::unexpected(context.error());
  auto made = std::make_unique<parts>();
  made->context = *context;
  made->kernel_below_bytes = options.kernel_below_bytes;
  auto code = options.kernel.empty() ? gpu::kernel_image() : options.kernel;
  if (!code.empty()) {
    const auto& api = (*context)->api();
    const void* image = code.data();
    if (auto ok = (*context)->call("cuModuleLoadData", api.ModuleLoadData, &made->module, image); !ok)
      return tl::unexpected(ok.error());
    auto found = (*context)->call("cuModuleGetFunction", api.ModuleGetFunction, &made->kernel, made->module,
                                  gpu::copy_kernel_name);
    if (!found)
      return tl::unexpected(found.error());
  }
  return std::unique_ptr<engine_device>(new engine_device(std::move(made)));
}

// ---- counters ----

result<void> engine_device::attach(const region& page) {
  if (parts_->page)
    return fail(errc::bad_request, "expected one page of counters, got a second one");
  auto registered = cuda::registration::make(parts_->context, std::as_writable_bytes(page.bytes()));
  if (!registered)
    return tl::unexpected(registered.error());
  parts_->page = std::move(*registered);
  parts_->page_bytes = page.size();
  return {};
}

result<uint64_t> engine_device::address_of(const layer_counter& counter) const {
  if (counter.offset % sizeof(uint32_t) != 0 || counter.offset >= parts_->page_bytes)
    return fail(errc::bad_request, "expected a counter at a multiple of 4 inside the attached page of " +
                                       std::to_string(parts_->page_bytes) + " bytes, got offset " +
                                       std::to_string(counter.offset));
  return parts_->page.address() + counter.offset;
}

result<void> engine_device::wait(void* stream, const layer_counter& counter) const {
  auto address = address_of(counter);
  if (!address)
    return tl::unexpected(address.error());
  const auto& context = *parts_->context;
  return context.call("cuStreamWaitValue32", context.api().StreamWaitValue32, stream_of(stream), *address,
                      counter.value, cuda::wait_value_geq);
}

result<void> engine_device::write(void* stream, const layer_counter& counter) const {
  auto address = address_of(counter);
  if (!address)
    return tl::unexpected(address.error());
  const auto& context = *parts_->context;
  return context.call("cuStreamWriteValue32", context.api().StreamWriteValue32, stream_of(stream), *address,
                      counter.value, cuda::write_value_default);
}

result<void> engine_device::ring(void* stream, const bell& counter) const {
  auto kept = std::make_unique<bell>(counter);
  auto rings = [](void* one) {
    std::unique_ptr<bell> own(static_cast<bell*>(one));
    own->ring();
  };
  const auto& context = *parts_->context;
  auto queued = context.call("cuLaunchHostFunc", context.api().LaunchHostFunc, stream_of(stream), +rings,
                             static_cast<void*>(kept.get()));
  if (queued)
    (void) kept.release(); // owned by the function, which is not called if the context is lost
  return queued;
}

// ---- small pieces ----

bool engine_device::has_kernel() const { return parts_->kernel != nullptr; }

bool engine_device::prefers_kernel(uint64_t piece_bytes) const {
  return has_kernel() && piece_bytes < parts_->kernel_below_bytes;
}

result<void> engine_device::gather(void* stream, std::span<const device_run> pieces, uint64_t buffer) const {
  return copy(stream, pieces, buffer, true);
}

result<void> engine_device::scatter(void* stream, std::span<const device_run> pieces, uint64_t buffer) const {
  return copy(stream, pieces, buffer, false);
}

result<void> engine_device::copy(void* stream, std::span<const device_run> pieces, uint64_t buffer,
                                 bool gathers) const {
  if (!has_kernel())
    return fail(errc::unsupported, "libterrace was built without NVIDIA's toolkit, so without its kernel");
  auto empty = [](const device_run& run) { return run.bytes == 0 || run.count == 0; };
  if (std::any_of(pieces.begin(), pieces.end(), empty))
    return fail(errc::bad_request, "expected runs of at least one piece of at least one byte");
  const auto& context = *parts_->context;
  while (!pieces.empty()) {
    gpu::copy_batch batch;
    uint64_t units = 0;
    for (; batch.runs < gpu::copy_batch::runs_max && batch.runs < pieces.size(); ++batch.runs) {
      const device_run& from = pieces[batch.runs];
      gpu::copy_run& run = batch.run[batch.runs];
      run = {buffer, from.address, from.bytes, from.bytes, from.stride, from.count};
      if (!gathers) {
        std::swap(run.destination, run.source);
        std::swap(run.destination_stride, run.source_stride);
      }
      buffer += from.bytes * from.count;
      units = std::max(units, run.bytes / gpu::unit_bytes(run) * run.count);
    }
    auto blocks = static_cast<unsigned>(
        std::clamp<uint64_t>((units + threads_per_block - 1) / threads_per_block, 1, blocks_max));
    void* parameters[] = {&batch};
    auto launched = context.call("cuLaunchKernel", context.api().LaunchKernel, parts_->kernel, blocks,
                                 batch.runs, 1U, threads_per_block, 1U, 1U, 0U, stream_of(stream),
                                 &parameters[0], static_cast<void**>(nullptr));
    if (!launched)
      return launched;
    pieces = pieces.subspan(batch.runs);
  }
  return {};
}

} // namespace terrace::client
