// Runs fio, if it is installed, so that the rate of a disk comes from a program that others know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace terrace::bench {

struct fio_job {
  std::string file;   ///< an existing file with all the bytes
  uint64_t begin = 0; ///< offset in the file
  uint64_t bytes = 0;
  uint32_t block_bytes = 0;
  uint32_t depth = 32;
  bool writes = false;
};

/// Accesses each block once, in order, with io_uring and O_DIRECT. Returns bytes per second; nothing if fio
/// is missing or fails.
std::optional<double> fio_rate(const fio_job& job);

/// Returns the rate in fio's JSON output.
std::optional<double> rate_in_fio_output(const std::string& json, bool writes);

} // namespace terrace::bench
