#include "gpu/cuda/cuda_memory.hpp"

namespace terrace::cuda {

namespace {

allocation_properties properties_for(const context& context) {
  allocation_properties properties;
  properties.handles = handle_type::posix_file_descriptor;
  properties.location = {location_type::device, context.device()};
  return properties;
}

} // namespace

result<uint64_t> page_bytes(const context& context) {
  auto properties = properties_for(context);
  size_t bytes = 0;
  auto ok = context.call("cuMemGetAllocationGranularity", context.api().MemGetAllocationGranularity, &bytes,
                         &properties, granularity::minimum);
  if (!ok)
    return tl::unexpected(ok.error());
  return bytes;
}

result<physical_memory> physical_memory::make(std::shared_ptr<const context> context, uint64_t bytes) {
  auto properties = properties_for(*context);
  allocation_handle handle = 0;
  if (auto ok = context->call("cuMemCreate", context->api().MemCreate, &handle, bytes, &properties, 0ull);
      !ok)
    return tl::unexpected(ok.error());
  return physical_memory(std::move(context), handle);
}

result<physical_memory> physical_memory::open(std::shared_ptr<const context> context, int descriptor) {
  allocation_handle handle = 0;
  // The driver's manual says that a descriptor is passed as a pointer.
  auto* shareable = reinterpret_cast<void*>(static_cast<uintptr_t>(descriptor));
  auto ok = context->call("cuMemImportFromShareableHandle", context->api().MemImportFromShareableHandle,
                          &handle, shareable, handle_type::posix_file_descriptor);
  if (!ok)
    return tl::unexpected(ok.error());
  return physical_memory(std::move(context), handle);
}

result<unique_fd> physical_memory::share() const {
  int descriptor = -1;
  auto ok = home()->call("cuMemExportToShareableHandle", home()->api().MemExportToShareableHandle,
                         &descriptor, get(), handle_type::posix_file_descriptor, 0ull);
  if (!ok)
    return tl::unexpected(ok.error());
  return unique_fd(descriptor);
}

result<virtual_memory> virtual_memory::make(physical_memory memory, uint64_t bytes) {
  virtual_memory made;
  made.memory_ = std::move(memory);
  const auto& home = made.memory_.home();
  const auto& api = home->api();
  device_pointer address = 0;
  if (auto ok = home->call("cuMemAddressReserve", api.MemAddressReserve, &address, bytes, size_t{0},
                           device_pointer{0}, 0ull);
      !ok)
    return tl::unexpected(ok.error());
  made.addresses_ = {home, address_range{address, bytes}};
  if (auto ok = home->call("cuMemMap", api.MemMap, address, bytes, size_t{0}, made.memory_.get(), 0ull); !ok)
    return tl::unexpected(ok.error());
  made.view_ = {home, address_range{address, bytes}};
  access_description description{{location_type::device, home->device()}, access::read_write};
  if (auto ok = home->call("cuMemSetAccess", api.MemSetAccess, address, bytes, &description, size_t{1}); !ok)
    return tl::unexpected(ok.error());
  return made;
}

} // namespace terrace::cuda
