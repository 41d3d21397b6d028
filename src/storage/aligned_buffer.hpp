// Memory suitable for O_DIRECT.
#pragma once

#include "index/object_header.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace terrace {

/// Zeroed bytes, aligned to 4 KiB. The size is a multiple of 4 KiB too.
class aligned_buffer {
 public:
  explicit aligned_buffer(uint64_t bytes)
      : data_(static_cast<std::byte*>(::operator new(bytes, alignment))), bytes_(bytes) {
    std::memset(data_.get(), 0, bytes);
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  uint64_t size() const { return bytes_; }
  std::span<std::byte> bytes() { return {data_.get(), bytes_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  static constexpr std::align_val_t alignment{disk_alignment_bytes};
  struct release {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, release> data_;
  uint64_t bytes_;
};

} // namespace terrace
