// A memfd, mapped and touched: what arenas and regions are made of.
#pragma once

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

/// Mapped in this process, every page present: large ones where the daemon's arenas have them.
class shared_memory {
 public:
  explicit shared_memory(size_t bytes);
  static shared_memory untouched(size_t bytes); ///< no page is present

  int descriptor() const { return fd_.get(); }
  std::span<uint8_t> bytes() const {
    return {reinterpret_cast<uint8_t*>(memory_.data()), static_cast<size_t>(memory_.size())};
  }

 private:
  shared_memory() = default;

  unique_fd fd_;
  mapping memory_;
};

} // namespace terrace::bench
