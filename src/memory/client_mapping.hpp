// Memory of a client as the daemon uses it: mapped only if its owner cannot cause a fault on access.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "memory/device_memory.hpp"
#include "memory/region_budget.hpp"
#include "memory/region_populator.hpp"
#include "memory/teardown.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

/// A region: the first `size()` bytes of a client's memfd. Its users cannot change it, so transfers on any
/// thread share it by `shared_ptr`; the mapping and the descriptor are released with the last reference. The
/// bytes belong to the client, which may write to them at any time: a value read from them must not be read
/// again and trusted to be the same.
///
/// A region is mapped if the memfd has F_SEAL_SHRINK, so that truncation cannot remove pages, and consists of
/// ordinary pages (the huge page pool may be exhausted on access). All others are accessed through the
/// descriptor with pread and pwrite, where a truncated file causes a short count instead of SIGBUS.
class client_region : public std::enable_shared_from_this<client_region> {
 public:
  /// Takes ownership of the descriptor. `bytes` is the size declared by the client. Errors: `bad_request` if
  /// it is not shared memory (a memfd or a file in /dev/shm), cannot be read, or is shorter than declared;
  /// `no_space` if the kernel cannot map it.
  struct options {
    region_charge charge;  ///< kept until the memory is unmapped
    teardown_ptr teardown; ///< the thread that unmaps and closes; null: the last owner's thread does
    std::weak_ptr<region_populator> populator; ///< maps its pages ahead; expired: the first access maps them
    device_memory_ptr page;                    ///< the device's view of the same memory; null: it has none
  };
  static result<std::shared_ptr<const client_region>> open(unique_fd fd, uint64_t bytes, options with = {});

  /// Makes a region of device memory, which is mapped elsewhere: it has neither a descriptor nor `data`.
  static std::shared_ptr<const client_region> of_device(device_memory_ptr memory, uint64_t bytes,
                                                        options with);

  uint64_t size() const { return size_; }
  const device_memory_ptr& device() const { return device_; } ///< null: the region is host memory
  const device_memory_ptr& page() const {
    return page_;
  } ///< a region in host memory in which a device writes generations, or null
  int fd() const { return fd_.get(); } ///< for pread and pwrite; stays owned by the region

  bool mapped() const { return static_cast<bool>(memory_); }
  std::byte* data() const { return memory_.data(); } ///< nullptr when not mapped
  bool writable() const { return writable_; }        ///< false: loads into it are `denied`
  const std::string& why_not_mapped() const { return why_not_mapped_; }

  /// Call before bytes are copied: the pages that exist by now are then mapped ahead. Safe on any thread.
  void copy_begins() const;
  region_ahead* ahead() const { return ahead_.get(); } ///< null: nobody maps its pages ahead

 private:
  client_region() = default;

  region_charge charge_; // destroyed last
  unique_fd fd_;
  mapping memory_;
  device_memory_ptr device_, page_;
  uint64_t size_ = 0;
  bool writable_ = false;
  std::string why_not_mapped_;
  std::unique_ptr<region_ahead> ahead_;
};

} // namespace terrace
