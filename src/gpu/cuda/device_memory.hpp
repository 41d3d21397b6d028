// Memory that a device can access: its own, another process's, and pinned host memory.
#pragma once

#include "base/unique_fd.hpp"
#include "gpu/cuda/context.hpp"

#include <span>

namespace terrace::cuda {

/// A range in the device's address space.
struct address_range {
  device_pointer address = 0;
  uint64_t bytes = 0;
};

struct allocation_kind {
  using type = address_range;
  static status release(const functions& api, const type& range) { return api.MemFree(range.address); }
};

struct ipc_import_kind {
  using type = address_range;
  static status release(const functions& api, const type& range) {
    return api.IpcCloseMemHandle(range.address);
  }
};

struct registration_kind {
  using type = void*;
  static status release(const functions& api, type address) { return api.MemHostUnregister(address); }
};

/// Device memory. It must outlive the streams' use of it and the imports of other processes.
class allocation : public owned<allocation_kind> {
 public:
  allocation() = default;
  /// Errors: `no_space`.
  static result<allocation> make(std::shared_ptr<const context> context, uint64_t bytes);
  /// Returns a handle with which other processes can map it.
  result<ipc_memory_handle> share() const;

 private:
  using owned::owned;
};

/// Another process's `allocation`, mapped here as a whole.
class ipc_import : public owned<ipc_import_kind> {
 public:
  ipc_import() = default;
  static result<ipc_import> open(std::shared_ptr<const context> context, const ipc_memory_handle& handle);

 private:
  using owned::owned;
};

/// Pinned host pages, for direct copies. The pages are mapped by the caller and must stay mapped as long as
/// this object exists.
class registration : public owned<registration_kind> {
 public:
  registration() = default;
  static result<registration> make(std::shared_ptr<const context> context, std::span<std::byte> memory);
  /// Registers pages that this process has mapped for reading. Errors: `unsupported` if the device cannot.
  static result<registration> make_read_only(std::shared_ptr<const context> context,
                                             std::span<const std::byte> memory);
  /// Returns the address on the device.
  device_pointer address() const { return address_; }

 private:
  registration(std::shared_ptr<const context> context, void* memory, device_pointer address)
      : owned(std::move(context), memory), address_(address) {}
  static result<registration> make_with(std::shared_ptr<const context> context, void* begin, size_t bytes,
                                        unsigned flags);
  device_pointer address_ = 0;
};

} // namespace terrace::cuda
