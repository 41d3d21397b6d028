// A shared memory mapping with a single owner.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

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

} // namespace terrace
