// Memory that the daemon may read and write for this process: a sealed memfd, mapped here.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>

namespace terrace::client {

/// Move-only; unmaps and closes on destruction (the daemon keeps its own reference while the region is
/// registered). The seals prevent shrinking and growing, so that the daemon can map and read it without
/// risking a fault.
class region {
 public:
  /// `name` is shown in /proc/PID/maps. Pages are committed on first access, or by `commit`.
  static result<region> create(const char* name, uint64_t bytes);

  region();
  region(region&& other) noexcept;
  region& operator=(region&& other) noexcept;
  ~region();

  /// Commits all pages now, large ones if the kernel has them (from Linux 6.1 on). Call it before the first
  /// access: it takes a tenth of the time that the accesses would, and copies from large pages run at full
  /// speed from the beginning. Error: `no_space`; `unsupported` before Linux 5.14.
  result<void> commit() const;

  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory_.data()); }
  uint64_t size() const { return memory_.size(); }
  std::span<uint8_t> bytes() const { return {data(), size()}; }
  int descriptor() const { return fd_.get(); }

 private:
  unique_fd fd_;
  mapping memory_;
};

} // namespace terrace::client
