#include "gpu/cuda/context.hpp"

namespace terrace::cuda {

result<std::shared_ptr<const context>> context::retain(std::shared_ptr<const driver> driver,
                                                       device_ordinal device) {
  context_handle handle = nullptr;
  if (auto ok =
          driver->check(driver->api().DevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain");
      !ok)
    return tl::unexpected(ok.error());
  return std::shared_ptr<const context>(new context(std::move(driver), device, handle));
}

context::~context() { driver_->api().DevicePrimaryCtxRelease(device_); }

} // namespace terrace::cuda
