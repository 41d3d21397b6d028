// What a benchmark's daemon is told: where its socket and its disk are, and nothing else that it does not have to be.
#pragma once

#include <cstdint>
#include <string>

namespace terrace::bench {

/// Zero and empty leave an option at the daemon's default. Whatever a benchmark sets here is what it measures, or the
/// size of its workload.
struct bench_daemon_options {
  uint32_t workers = 0;
  uint64_t host_bytes = 0;
  uint64_t disk_bytes = 0;
  bool disk = true;            ///< false: without the disk tier
  bool isolated = false;       ///< the one group that clients meet
  bool second_group = false;   ///< another one, at `second_socket()`
  uint16_t metrics_port = 0;   ///< 0: any free one
  std::string connection = {}; ///< lines of [connection]
  std::string more = {};       ///< further sections
  std::string preload = {};    ///< a library that is loaded into the daemon
};

struct daemon_places {
  std::string socket;
  std::string second_socket;
  std::string state; ///< folder of the disk tier
};

/// The configuration file.
std::string daemon_configuration(const bench_daemon_options& with, const daemon_places& at);

} // namespace terrace::bench
