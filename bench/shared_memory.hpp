// A memfd, mapped and touched: what arenas and regions are made of.
#pragma once

#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

/// Mapped in this process, every page present.
class shared_memory {
 public:
  explicit shared_memory(size_t bytes);
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory();

  int descriptor() const { return fd_.get(); }
  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  unique_fd fd_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace terrace::bench
