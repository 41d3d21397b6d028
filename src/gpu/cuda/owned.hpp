// One move-only owner for everything that the driver makes and wants back.
#pragma once

#include "gpu/cuda/context.hpp"

#include <utility>

namespace terrace::cuda {

/// `Kind` has the handle's type and how it is given back: `using type`, `static status release(const functions&, type)`.
/// Ends its handle in the context that it was made in. What the driver answers to that is not reported: after a sticky error
/// every answer is that error, and the process is about to end.
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
