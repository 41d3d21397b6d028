#include "client/device_memory.hpp"

#include "gpu/cuda/device_memory.hpp"

#include <utility>

namespace terrace::client {

struct device_memory::parts {
  cuda::allocation memory;
};

device_memory::device_memory(std::unique_ptr<parts> made) : parts_(std::move(made)) {}
device_memory::~device_memory() = default;

result<std::unique_ptr<device_memory>> device_memory::make(const device_memory_options& options) {
  if (options.bytes == 0)
    return fail(errc::bad_request, "expected memory of at least one byte, got none");
  auto device = cuda::locate(options.device, options.driver);
  if (!device)
    return tl::unexpected(device.error());
  auto context = cuda::context::retain(device->by, device->properties.ordinal);
  if (!context)
    return tl::unexpected(context.error());
  auto made = cuda::allocation::make(*context, options.bytes);
  if (!made)
    return tl::unexpected(made.error());
  return std::unique_ptr<device_memory>(new device_memory(std::make_unique<parts>(parts{std::move(*made)})));
}

uint64_t device_memory::address() const { return parts_->memory.get().address; }
uint64_t device_memory::bytes() const { return parts_->memory.get().bytes; }

} // namespace terrace::client
