// What a machine, or a container, lacks for the daemon, with a fix for each finding.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cli {

/// A failure keeps the daemon from starting. With a warning it starts, and lacks something.
enum class health { ok, warning, failure };

struct finding {
  std::string name; ///< "io_uring"
  health state = health::ok;
  std::string text; ///< what was found
  std::string fix;  ///< a line; empty if the state is `ok`
};

/// The store of a [[remote]] was asked.
struct tried_remote {
  std::string address;
  std::string step;    ///< that failed, as in `terrace remote probe`
  std::string failure; ///< what is wrong and what to do; empty: the store can be used
};

/// The part of a daemon's configuration that the machine has to fulfil. Empty: it is not known, and not examined.
struct doctor_subject {
  std::vector<std::string> sockets;
  std::vector<std::string> disks; ///< folders of extent files; none without a disk tier
  std::vector<std::string> makes; ///< folders of both that the daemon makes itself
  uint64_t host_bytes = 0;
  uint64_t disk_bytes = 0;   ///< of all folders together
  std::string metrics;       ///< HOST:PORT; empty: no metrics
  std::vector<finding> told; ///< what the daemon itself says of its configuration
  std::vector<tried_remote> remotes;
};

struct doctor_options {
  std::string root;                   ///< before /proc, /sys and the units of systemd, for tests
  uint64_t probe_bytes = 64ULL << 20; ///< written to each disk, read back and removed; 0: no probe
};

/// Looks at the machine as the calling user: run it as the daemon's. Creates and removes one file in each folder of a disk.
/// Blocks for as long as the disks take. A path about which `told` has something is not looked at again.
std::vector<finding> examine(const doctor_subject& subject, const doctor_options& options);

/// Lines of a drop-in of systemd (terraced.service.d) with which the unit may write to the folders of the disks and of the
/// sockets that it may not write to otherwise. Empty: the unit as it is installed may write to all.
std::string unit_drop_in(const doctor_subject& subject);

} // namespace terrace::cli
