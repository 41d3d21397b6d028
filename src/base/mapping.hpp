// A shared memory mapping with a single owner, and the NUMA node of its pages.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace {

class mapping {
 public:
  mapping() = default;
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~mapping() { reset(); }

  /// Maps the first `bytes` of `fd` shared. The descriptor may be closed afterwards. Errors: `denied` if a seal or the
  /// mode of the descriptor forbids it, `no_space` if the kernel has no memory for it, otherwise `internal`. A mapping
  /// of 2 MiB or more begins at a multiple of 2 MiB if possible, so that it can have large pages.
  static result<mapping> map(int fd, uint64_t bytes, bool writable);

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  mapping(std::byte* data, uint64_t size) : data_(data), size_(size) {}
  void reset();

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

// ---- NUMA nodes, and memory bound to one of them ----

/// Returns the nodes with memory, from /sys/devices/system/node; only node 0 if the kernel has no NUMA support.
std::vector<uint32_t> numa_nodes();

/// Parses the kernel's list format: "0-3,8" is 0, 1, 2, 3, 8. Stops at anything that is not a number.
std::vector<uint32_t> parse_node_list(std::string_view text);

/// Makes pages of [data, data + bytes) that are committed from now on come from `node` only (MPOL_BIND;
/// mbind(2), "Memory policy for shared memory": for a memfd this holds for every process that touches them).
/// `data` is page-aligned. Errors: `bad_request` for a node that does not exist, `denied` if a sandbox
/// forbids the call, `unsupported` for a kernel without NUMA.
result<void> bind_to_node(std::byte* data, uint64_t bytes, uint32_t node);

} // namespace terrace
