// What `terrace disk` finds in a volume, for people and for programs.
#pragma once

#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "storage/offline_volume.hpp"
#include "storage/volume_inspection.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

/// `machine`: of whoever looks, to tell whether the volume belongs to it.
std::string format_inspection(const std::string& path, const volume_inspection& is,
                              const std::array<uint8_t, 16>& machine);
json to_json(const std::string& path, const volume_inspection& is);

struct inspected_volume {
  offline_volume volume; ///< locked
  volume_inspection is;
};

/// For commands that only read.
outcome<inspected_volume> open_and_inspect(const std::string& path);

/// What is wrong with these files as one volume, or empty: one of several paths is missing, or not in its place. Files of volumes
/// on one path have nothing to do with each other.
std::string describe_mismatch(const std::vector<std::string>& paths,
                              const std::vector<inspected_volume>& volumes);

/// One value for one file, `{"paths": [...]}` for several.
void print_json_of_paths(console& to, std::vector<json> values);

/// How `terrace disk` ends when a volume cannot be worked on: `usage` for a path that is no volume, else `failed`. Says what
/// to do where the text does not.
tl::unexpected<failure> disk_failure(const std::string& path, const error& e);

} // namespace terrace::cli
