// A move-only owner for everything that the driver creates and that must be released.
#pragma once

#include "gpu/cuda/context.hpp"

#include <utility>

namespace terrace::cuda {

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

} // namespace terrace::cuda
