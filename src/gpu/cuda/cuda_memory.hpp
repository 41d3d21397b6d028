// Memory of a GPU behind the device interface.
#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/virtual_memory.hpp"
#include "gpu/cufile/owners.hpp"
#include "gpu/device.hpp"

#include <variant>

namespace terrace::gpu {

/// Pinned host pages. They stay mapped until they are unpinned.
struct pinned_pages {
  std::shared_ptr<const mapping> pages;
  cuda::registration registration;
};

class cuda_memory : public memory {
 public:
  using owner =
      std::variant<cuda::allocation, cuda::ipc_import, cuda::virtual_memory, pinned_pages, cufile::buffer>;
  cuda_memory(const cuda::context* home, owner made, cuda::address_range range, bool writable = true)
      : home_(home), owner_(std::move(made)), range_(range), writable_(writable) {}

  uint64_t bytes() const override { return range_.bytes; }
  bool writable() const override { return writable_; }
  result<memory_handle> share() const override;
  cuda::device_pointer address() const { return range_.address; }
  /// True for memory of a GPU, false for pinned pages.
  bool on_device() const { return !std::holds_alternative<pinned_pages>(owner_); }
  /// True if streams of `context` can copy it.
  bool reachable_from(const cuda::context& context) const { return home_ == &context; }

 private:
  const cuda::context* home_; ///< kept by the owner
  owner owner_;
  cuda::address_range range_;
  bool writable_;
};

} // namespace terrace::gpu
