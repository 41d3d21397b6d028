// Memory that the daemon may read and write for this process: a sealed memfd, mapped here.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <utility>

namespace terrace::client {

/// Move-only; unmaps and closes on destruction (the daemon keeps its own reference while the region is
/// registered). The seals prevent shrinking and growing, so that the daemon can map and read it without
/// risking a fault.
class region {
 public:
  /// `name` is shown in /proc/PID/maps. Pages are committed on first access, or by `commit`.
  static result<region> create(const char* name, uint64_t bytes);

  region() = default;
  region(region&& other) noexcept
      : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  region& operator=(region&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~region();

  /// Commits all pages now. A region that exists when it is registered is copied at full speed from the beginning,
  /// because the daemon maps it ahead. Error: `no_space`; `unsupported` before Linux 5.14.
  result<void> commit() const;

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<uint8_t> bytes() const { return {data_, size_}; }
  int descriptor() const { return fd_.get(); }

 private:
  unique_fd fd_;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

} // namespace terrace::client
