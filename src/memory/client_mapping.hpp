// Memory of a client as the daemon uses it: mapped only if its owner cannot cause a fault on access.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "memory/region_budget.hpp"
#include "memory/teardown.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

/// A region: the first `size()` bytes of a client's memfd. Immutable, so that transfers on any thread share
/// it by `shared_ptr`; the mapping and the descriptor are released with the last of them. The bytes belong to
/// the client, which may write to them at any time: a value read from them must not be read again and trusted
/// to be the same.
///
/// A region is mapped if the memfd has F_SEAL_SHRINK, so that truncation cannot remove pages, and consists of
/// ordinary pages (the huge page pool may be exhausted on access). All others are accessed through the
/// descriptor with pread and pwrite, where a truncated file causes a short count instead of SIGBUS.
class client_region {
 public:
  /// Takes ownership of the descriptor. `bytes` is the size declared by the client. Errors: `bad_request` if
  /// it is not shared memory (a memfd or a file in /dev/shm), cannot be read, or is shorter than declared;
  /// `no_space` if the kernel cannot map it;
  struct options {
    region_charge charge;  ///< kept until the memory is unmapped
    teardown_ptr teardown; ///< which unmaps and closes; null: whoever has the last reference
  };
  static result<std::shared_ptr<const client_region>> open(unique_fd fd, uint64_t bytes, options with = {});

  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); } ///< for pread and pwrite; stays owned by the region

  bool mapped() const { return static_cast<bool>(memory_); }
  std::byte* data() const { return memory_.data(); } ///< nullptr when not mapped
  bool writable() const { return writable_; }        ///< false: loads into it are `denied`
  const std::string& why_not_mapped() const { return why_not_mapped_; }

 private:
  client_region() = default;

  region_charge charge_; // ends last
  unique_fd fd_;
  mapping memory_;
  uint64_t size_ = 0;
  bool writable_ = false;
  std::string why_not_mapped_;
};

} // namespace terrace
