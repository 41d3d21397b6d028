// Memory of the process for large tables.
#pragma once

#include <cstddef>
#include <utility>

namespace terrace {

/// A private, zeroed run of memory in whole 2 MiB, aligned to them. `huge`: in huge pages, where the kernel gives
/// transparent ones to those who ask (else in ordinary pages, silently): a table that is read in disorder then costs one
/// miss an access and not a walk through the page tables as well. Pages are taken when they are first touched.
class huge_memory {
 public:
  static constexpr size_t unit = size_t{2} << 20;

  huge_memory() = default;
  /// Throws std::bad_alloc, as `new` does. Precondition: a multiple of `unit`.
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
