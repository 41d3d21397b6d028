// The configuration of a benchmark's daemon: where its socket and its disk are, and otherwise as little as
// possible.
#pragma once

#include <cstdint>
#include <string>

namespace terrace::bench {

/// Zero and empty leave an option at the daemon's default. The options that a benchmark sets are its subject
/// or the size of its workload.
struct bench_daemon_options {
  uint32_t workers = 0;
  uint64_t host_bytes = 0;
  uint64_t disk_bytes = 0;
  bool disk = true;            ///< false: no disk tier
  bool isolated = false;       ///< applies to the one group that clients meet
  bool second_group = false;   ///< adds another group, at `second_socket()`
  uint16_t metrics_port = 0;   ///< 0: any free port
  std::string connection = {}; ///< lines of [connection]
  std::string more = {};       ///< text of further sections
  std::string preload = {};    ///< library that is preloaded into the daemon
};

struct daemon_places {
  std::string socket;
  std::string second_socket;
  std::string state; ///< folder of the disk tier
};

/// The configuration file.
std::string daemon_configuration(const bench_daemon_options& with, const daemon_places& at);

} // namespace terrace::bench
