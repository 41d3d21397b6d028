#include "client/device_place.hpp"

#include "gpu/cuda/context.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace terrace::client {

namespace {

std::string hexadecimal(uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

std::string text_of(const device_range& range) {
  return std::to_string(range.bytes) + " bytes at " + hexadecimal(range.address);
}

/// Returns the GPU that has the memory.
result<cuda::device_ordinal> owner_of(const cuda::driver& driver, const device_range& range) {
  auto refuse = [&](const std::string& text) {
    return fail(errc::bad_request, "expected memory of a GPU, got " + text_of(range) + ", " + text);
  };
  auto asked = [&](cuda::pointer_attribute which, void* value) {
    return driver.check(driver.api().PointerGetAttribute(value, which, range.address),
                        "cuPointerGetAttribute");
  };
  cuda::memory_type type{};
  if (auto ok = asked(cuda::pointer_attribute::memory_type, &type); !ok)
    return refuse("which the driver does not know: " + ok.error().text);
  if (type != cuda::memory_type::device)
    return refuse("which is the host's");
  cuda::device_ordinal ordinal = 0;
  if (auto ok = asked(cuda::pointer_attribute::device_ordinal, &ordinal); !ok)
    return refuse("whose device is not known: " + ok.error().text);
  return ordinal;
}

} // namespace

result<device_place> find_device_memory(const device_range& range) {
  if (range.bytes == 0)
    return fail(errc::bad_request, "expected memory of at least one byte, got none");
  auto driver = cuda::driver::open(range.driver);
  if (!driver)
    return tl::unexpected(driver.error());
  auto ordinal = owner_of(**driver, range);
  if (!ordinal)
    return tl::unexpected(ordinal.error());
  const auto& api = (*driver)->api();
  cuda::device_uuid uuid;
  if (auto ok = (*driver)->check(api.DeviceGetUuid(&uuid, *ordinal), "cuDeviceGetUuid"); !ok)
    return tl::unexpected(ok.error());
  // The owner of memory on this GPU has created its primary context.
  auto context = cuda::context::retain(*driver, *ordinal);
  if (!context)
    return tl::unexpected(context.error());

  cuda::device_pointer base = 0;
  size_t bytes = 0;
  auto found = (*context)->call("cuMemGetAddressRange", api.MemGetAddressRange, &base, &bytes, range.address);
  if (!found)
    return tl::unexpected(found.error());
  device_place place;
  place.offset = range.address - base;
  if (place.offset > bytes || range.bytes > bytes - place.offset)
    return fail(errc::bad_request, "expected memory inside of one allocation, got " + text_of(range) +
                                       ", in one of " + std::to_string(bytes) + " bytes at " +
                                       hexadecimal(base));
  cuda::ipc_memory_handle handle;
  if (auto ok = (*context)->call("cuIpcGetMemHandle", api.IpcGetMemHandle, &handle, base); !ok)
    return fail(
        errc::unsupported,
        "expected memory that is shared by handle, as that of cudaMalloc, got " + text_of(range) + ": " +
            ok.error().text +
            ". Expandable segments and cudaMallocAsync cannot be shared: allocate this memory "
            "without them (PyTorch: no expandable_segments and no backend in PYTORCH_CUDA_ALLOC_CONF)");
  place.allocation.device = cuda::to_text(uuid);
  place.allocation.bytes = place.offset + range.bytes;
  std::copy(std::begin(handle.reserved), std::end(handle.reserved), place.allocation.handle.begin());
  return place;
}

} // namespace terrace::client
