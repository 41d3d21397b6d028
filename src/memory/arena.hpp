// A segment of memory that the daemon owns: a sealed memfd that clients can map.
#pragma once

#include "base/error.hpp"
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

struct arena_options {
  std::string name = "terrace-arena"; ///< shown in /proc/PID/maps as memfd:NAME; at most 200 bytes
  uint64_t bytes = 0;                 ///< a multiple of 4 KiB (of 2 MiB with huge pages)
  bool client_may_write = false;      ///< staging memory, or a group with `write_in_place`
  bool huge_pages = false;            ///< 2 MiB pages from the kernel's pool; falls back to ordinary pages
  std::optional<uint32_t>
      numa_node; ///< all pages come from this node; none: from the node of the first touch

  /// Errors: `bad_request` with the option and the fix.
  result<void> validate() const;
};

/// True if every page of this shared memory exists. About 0.1 ms for 64 MiB.
bool all_resident(const std::byte* data, uint64_t bytes);

/// The daemon maps the memory for reading and writing, then seals it before any descriptor is passed on:
/// SHRINK, GROW and SEAL always, so that nobody can remove pages from under a mapping; FUTURE_WRITE unless
/// clients may write, so that later mappings, the daemon's included, are read-only and write(2) fails. A seal
/// cannot be removed.
///
/// Memory is committed by the first process that touches it (and charged to that process's cgroup).
/// `prefault` commits it in pieces so that start-up does not wait. Not thread-safe except `data` and `size`;
/// access to the bytes is not synchronized here.
class arena {
 public:
  /// Errors: `bad_request` for wrong options or a NUMA node that does not exist (see `bind_to_node`),
  /// `no_space` if the kernel has no memory to map, `internal` if another system call fails or a seal is not
  /// effective.
  static result<arena> create(const arena_options& options);

  std::byte* data() const { return memory_.data(); }
  uint64_t size() const { return memory_.size(); }
  int fd() const { return fd_.get(); } ///< stays owned by the arena
  bool client_may_write() const { return client_may_write_; }

  /// A new descriptor (close-on-exec) to pass to a client.
  result<unique_fd> duplicate() const;

  /// Commits up to `bytes` more and returns whether everything is committed. Contents are kept. Takes about
  /// 0.25 s per GiB, so a caller on a worker asks for 16 MiB at a time. Errors: `no_space` (memory, huge
  /// pages or cgroup).
  result<bool> prefault(uint64_t bytes);
  uint64_t prefaulted_bytes() const { return prefaulted_; }

  bool huge_pages() const { return huge_pages_; }
  /// Why huge pages were requested but not given, with the fix; otherwise empty. The arena works in either
  /// case.
  const std::string& huge_pages_refusal() const { return huge_pages_refusal_; }

 private:
  arena() = default;
  static result<arena> create_with(const arena_options& options, bool huge_pages);

  unique_fd fd_;
  mapping memory_;
  uint64_t prefaulted_ = 0;
  bool client_may_write_ = false;
  bool huge_pages_ = false;
  std::string huge_pages_refusal_;
};

} // namespace terrace
