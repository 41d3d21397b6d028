// A device's primary context, retained. Everything of the driver that has an owner in this process hangs on one.
#pragma once

#include "gpu/cuda/driver.hpp"

#include <memory>
#include <string_view>

namespace terrace::cuda {

/// Shared by all that was made in it, so it ends after them. Safe from all threads.
class context {
 public:
  /// Errors: as `driver::check`. The first one in a process creates the context, which takes memory of the device.
  static result<std::shared_ptr<const context>> retain(std::shared_ptr<const driver> driver,
                                                       device_ordinal device);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  const driver& owner() const { return *driver_; }
  const functions& api() const { return driver_->api(); }
  device_ordinal device() const { return device_; }

  /// Calls `function` with the context current to this thread. `what` names it in errors; a null function is `unsupported`.
  template <class... Parameters, class... Arguments>
  result<void> call(std::string_view what, status (*function)(Parameters...), Arguments... arguments) const {
    if (!function)
      return fail(errc::unsupported, "the driver has no " + std::string(what));
    return driver_->check(raw(function, arguments...), what);
  }

  /// The same with the driver's own code, for callers to whom some codes are answers.
  template <class... Parameters, class... Arguments>
  status raw(status (*function)(Parameters...), Arguments... arguments) const {
    if (auto code = driver_->api().CtxPushCurrent(handle_); code != status::success)
      return code;
    auto code = function(arguments...);
    context_handle popped = nullptr;
    driver_->api().CtxPopCurrent(&popped);
    return code;
  }

 private:
  context(std::shared_ptr<const driver> driver, device_ordinal device, context_handle handle)
      : driver_(std::move(driver)), device_(device), handle_(handle) {}

  std::shared_ptr<const driver> driver_;
  device_ordinal device_;
  context_handle handle_;
};

} // namespace terrace::cuda
