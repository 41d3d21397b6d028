// A client's memory as the daemon sees it: mapped only when its owner cannot turn a touch into a fault.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

/// A region: the first `size()` bytes of a client's memfd. Immutable, so that transfers on any thread share it by
/// `shared_ptr`; the mapping and the descriptor end with the last of them. The bytes belong to the client, who may
/// write to them at any time: nothing read from them may be trusted twice.
///
/// It is mapped when the memfd carries F_SEAL_SHRINK, so that no truncation can take the pages away, and is made of
/// ordinary pages (the pool of huge pages may run dry at a touch). Everything else is used through its descriptor with
/// pread and pwrite, where a truncated file is a short count and not SIGBUS.
class client_region {
 public:
  /// Takes the descriptor over. `bytes` is what the client declared. Errors: `bad_request` when it is not shared memory
  /// (a memfd, or a file of /dev/shm), cannot be read, or is shorter than declared; `no_space` when the kernel cannot
  /// map it.
  static result<std::shared_ptr<const client_region>> open(unique_fd fd, uint64_t bytes);

  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); } ///< for pread and pwrite; stays owned by the region

  bool mapped() const { return static_cast<bool>(memory_); }
  std::byte* data() const { return memory_.data(); } ///< nullptr when not mapped
  bool writable() const { return writable_; }        ///< false: loads into it are `denied`
  const std::string& why_not_mapped() const { return why_not_mapped_; }

 private:
  client_region() = default;

  unique_fd fd_;
  mapping memory_;
  uint64_t size_ = 0;
  bool writable_ = false;
  std::string why_not_mapped_;
};

} // namespace terrace
