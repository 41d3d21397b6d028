// A device's retained primary context. All driver objects of this process belong to one.
#pragma once

#include "gpu/cuda/driver.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace terrace::cuda {

/// Everything created in it shares it, so it ends last. Safe on all threads.
class context {
 public:
  /// Errors: as `driver::check`. The first one in a process creates the context, which uses device memory.
  static result<std::shared_ptr<const context>> retain(std::shared_ptr<const driver> driver,
                                                       device_ordinal device);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  const driver& owner() const { return *driver_; }
  const functions& api() const { return driver_->api(); }
  device_ordinal device() const { return device_; }

  /// Calls `function` with the context current on this thread. `what` is its name in errors; a null function
  /// is `unsupported`.
  template <class... Parameters, class... Arguments>
  result<void> call(std::string_view text, status (*function)(Parameters...), Arguments... arguments) const {
    if (!function)
      return fail(errc::unsupported, "the driver has no " + std::string(text));
    return driver_->check(raw(function, arguments...), text);
  }

  /// Does the same, but returns the driver's code, for callers that expect certain codes.
  template <class... Parameters, class... Arguments>
  status raw(status (*function)(Parameters...), Arguments... arguments) const {
    if (auto code = driver_->api().CtxPushCurrent(handle_); code != status::success)
      return code;
    auto code = function(arguments...);
    context_handle popped = nullptr;
    driver_->api().CtxPopCurrent(&popped);
    return code;
  }

  /// Calls `what` with the context current on this thread, and returns its result. This is for libraries that
  /// use the driver themselves. If the context cannot be made current, the library reports it.
  template <class What>
  auto within(What&& value) const {
    struct current {
      explicit current(const context& device) : api(device.api()) {
        pushed = api.CtxPushCurrent(device.handle_) == status::success;
      }
      ~current() {
        context_handle popped = nullptr;
        if (pushed)
          api.CtxPopCurrent(&popped);
      }
      const functions& api;
      bool pushed = false;
    } now(*this);
    return value();
  }

 private:
  context(std::shared_ptr<const driver> driver, device_ordinal device, context_handle handle)
      : driver_(std::move(driver)), device_(device), handle_(handle) {}

  std::shared_ptr<const driver> driver_;
  device_ordinal device_;
  context_handle handle_;
};

// A move-only owner for everything that the driver creates and that must be released.

/// `Kind` has the handle's type and its release: `using type`, `static status release(const functions&,
/// type)`. The handle is released in the context in which it was created. The driver's result is ignored:
/// after a sticky error every call returns that error, and the process is about to exit.
template <class Kind>
class owned {
 public:
  using type = typename Kind::type;

  owned() = default;
  owned(std::shared_ptr<const context> context, type handle)
      : context_(std::move(context)), handle_(std::move(handle)) {}
  owned(owned&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, type{})) {
    other.context_ = nullptr;
  }
  owned& operator=(owned&& other) noexcept {
    if (this != &other) {
      reset();
      context_ = std::exchange(other.context_, nullptr);
      handle_ = std::exchange(other.handle_, type{});
    }
    return *this;
  }
  ~owned() { reset(); }

  explicit operator bool() const { return context_ != nullptr; }
  const type& get() const { return handle_; }
  const std::shared_ptr<const context>& home() const { return context_; }

  void reset() {
    if (!context_)
      return;
    const auto& api = context_->api();
    context_->raw(
        +[](const functions* table, const type* handle) { return Kind::release(*table, *handle); }, &api,
        &handle_);
    context_ = nullptr;
    handle_ = type{};
  }

 protected:
  type& handle() { return handle_; }

 private:
  std::shared_ptr<const context> context_;
  type handle_{};
};

inline result<std::shared_ptr<const context>> context::retain(std::shared_ptr<const driver> driver,
                                                              device_ordinal device) {
  context_handle handle = nullptr;
  if (auto ok =
          driver->check(driver->api().DevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain");
      !ok)
    return tl::unexpected(ok.error());
  return std::shared_ptr<const context>(new context(std::move(driver), device, handle));
}

inline context::~context() { driver_->api().DevicePrimaryCtxRelease(device_); }

} // namespace terrace::cuda
