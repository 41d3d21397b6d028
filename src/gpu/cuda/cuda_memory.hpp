// Memory of a GPU behind the device interface.
#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cufile/owners.hpp"
#include "gpu/device.hpp"

#include <variant>

namespace terrace::cuda {

// Device memory with separate physical memory and addresses, as used by engines with expandable segments and
// sleep modes. It is shared by POSIX descriptors instead of handles.

struct physical_kind {
  using type = allocation_handle;
  static status release(const functions& api, type handle) { return api.MemRelease(handle); }
};

struct reservation_kind {
  using type = address_range;
  static status release(const functions& api, const type& range) {
    return api.MemAddressFree(range.address, range.bytes);
  }
};

struct view_kind {
  using type = address_range;
  static status release(const functions& api, const type& range) {
    return api.MemUnmap(range.address, range.bytes);
  }
};

/// The unit of sizes and offsets below.
result<uint64_t> page_bytes(const context& context);

/// Physical memory without an address. It exists until this object, its views, its descriptors and all
/// imports are gone.
class physical_memory : public owned<physical_kind> {
 public:
  physical_memory() = default;
  /// `bytes` is a multiple of `page_bytes`. Errors: `no_space`.
  static result<physical_memory> make(std::shared_ptr<const context> context, uint64_t bytes);
  /// Opens the memory by another process's descriptor, which may be closed afterwards. The driver's interface
  /// does not report its size: a view larger than the memory fails in `virtual_memory::make`.
  static result<physical_memory> open(std::shared_ptr<const context> context, int descriptor);

  /// Returns a descriptor to send to another process.
  result<unique_fd> share() const;

 private:
  using owned::owned;
};

/// Physical memory at an address, readable and writable by the context's device.
class virtual_memory {
 public:
  virtual_memory() = default;
  static result<virtual_memory> make(physical_memory memory, uint64_t bytes);

  const address_range& range() const { return view_.get(); }
  const physical_memory& memory() const { return memory_; }

 private:
  // The members are destroyed from the last to the first.
  physical_memory memory_;
  owned<reservation_kind> addresses_;
  owned<view_kind> view_;
};

} // namespace terrace::cuda

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
