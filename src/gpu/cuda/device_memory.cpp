#include "gpu/cuda/device_memory.hpp"

namespace terrace::cuda {

result<allocation> allocation::make(std::shared_ptr<const context> context, uint64_t bytes) {
  device_pointer address = 0;
  if (auto ok = context->call("cuMemAlloc", context->api().MemAlloc, &address, bytes); !ok)
    return tl::unexpected(ok.error());
  return allocation(std::move(context), address_range{address, bytes});
}

result<ipc_memory_handle> allocation::share() const {
  ipc_memory_handle handle;
  if (auto ok = home()->call("cuIpcGetMemHandle", home()->api().IpcGetMemHandle, &handle, get().address); !ok)
    return tl::unexpected(ok.error());
  return handle;
}

result<ipc_import> ipc_import::open(std::shared_ptr<const context> context, const ipc_memory_handle& handle) {
  device_pointer address = 0;
  const auto& api = context->api();
  auto opened = context->call("cuIpcOpenMemHandle", api.IpcOpenMemHandle, &address, handle,
                              ipc_lazy_enable_peer_access);
  if (!opened)
    return tl::unexpected(opened.error());
  ipc_import import(context, address_range{address, 0}); // closes it if the next call fails
  // The size comes from the driver; the other process's claims are not trusted.
  device_pointer base = 0;
  size_t bytes = 0;
  if (auto ok = context->call("cuMemGetAddressRange", api.MemGetAddressRange, &base, &bytes, address); !ok)
    return tl::unexpected(ok.error());
  import.handle().bytes = base + bytes - address;
  return import;
}

result<registration> registration::make(std::shared_ptr<const context> context, std::span<std::byte> memory) {
  return make_with(std::move(context), memory.data(), memory.size(),
                   host_register_portable | host_register_device_map);
}

result<registration> registration::make_read_only(std::shared_ptr<const context> context,
                                                  std::span<const std::byte> memory) {
  // The driver takes a pointer to writable bytes, whatever the flag says.
  return make_with(std::move(context), const_cast<std::byte*>(memory.data()), memory.size(),
                   host_register_portable | host_register_device_map | host_register_read_only);
}

result<registration> registration::make_with(std::shared_ptr<const context> context, void* begin,
                                             size_t bytes, unsigned flags) {
  const auto& api = context->api();
  auto pinned = context->call("cuMemHostRegister", api.MemHostRegister, begin, bytes, flags);
  if (!pinned)
    return tl::unexpected(pinned.error());
  registration made(context, begin, 0);
  if (auto ok =
          context->call("cuMemHostGetDevicePointer", api.MemHostGetDevicePointer, &made.address_, begin, 0u);
      !ok)
    return tl::unexpected(ok.error());
  return made;
}

} // namespace terrace::cuda
