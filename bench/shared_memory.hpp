// A memfd, mapped and touched, like the memory of arenas and regions.
#pragma once

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::bench {

/// Memory mapped in this process with every page present, large ones if the daemon's arenas have them.
class shared_memory {
 public:
  explicit shared_memory(size_t bytes);
  static shared_memory untouched(size_t bytes); ///< leaves all pages absent

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
