// Process memory for large tables.
#pragma once

#include <cstddef>
#include <utility>

namespace terrace {

/// A private, zeroed range of memory, a multiple of 2 MiB and aligned to 2 MiB. `huge`: uses transparent huge
/// pages where the kernel provides them on request (otherwise ordinary pages, silently), so that random
/// access to a table costs one cache miss without a page table walk. Pages are committed on first access.
class huge_memory {
 public:
  static constexpr size_t unit = size_t{2} << 20;

  huge_memory() = default;
  /// Throws std::bad_alloc, like `new`. Precondition: `bytes` is a multiple of `unit`.
  huge_memory(size_t bytes, bool huge);
  huge_memory(huge_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  huge_memory& operator=(huge_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~huge_memory();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

} // namespace terrace
