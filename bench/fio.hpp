// fio, where it is installed: the rate of a disk by a program that others know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace terrace::bench {

struct fio_job {
  std::string file;   ///< exists, and has all the bytes
  uint64_t begin = 0; ///< in the file
  uint64_t bytes = 0;
  uint32_t block_bytes = 0;
  uint32_t depth = 32;
  bool writes = false;
};

/// Each block once, in order, with io_uring and O_DIRECT. Bytes a second; nothing if there is no fio, or if it fails.
std::optional<double> fio_rate(const fio_job& job);

/// The rate in what fio writes as JSON.
std::optional<double> rate_in_fio_output(const std::string& json, bool writes);

} // namespace terrace::bench
