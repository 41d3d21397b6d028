// Log texts and metrics for an opened disk tier.
#pragma once

#include "metrics/disk_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "storage/disk/disk_opening.hpp"

#include <span>
#include <string>
#include <vector>

namespace terrace {

/// The number of unusable blocks and records in the index of one path.
inline uint64_t damaged_in(const opened_path& path) {
  return path.found.damaged_blocks + path.found.missing_blocks + path.found.damaged_records;
}

/// Describes the tier's size, its place, and what was found in it.
std::string describe_opened(const opened_disk& disk);

/// Lists the paths that are left out; empty if none.
std::string describe_left_out(const opened_disk& disk);

/// Describes what is lost of its index; empty if nothing.
std::string describe_losses(const opened_disk& disk);

/// Lines for the log when the tier joins: that it does, and what is wrong. `tier` is its name.
struct joining_lines {
  std::string joined;
  std::vector<std::string> warnings;
};
joining_lines describe_joining(const std::string& tier, const opened_disk& disk);

/// Counts what was found and what is missing. `probes` is parallel to the configured paths.
void count_opened(const opened_disk& disk, std::span<const metrics::path_probes> probes,
                  metrics::tier_probe& tier);

} // namespace terrace
