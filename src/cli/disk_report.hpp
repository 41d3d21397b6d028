// The output of `terrace disk`, as text and JSON.
#pragma once

#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "storage/offline_volume.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

/// `machine`: the present machine, to show whether the volume belongs to it.
std::string format_inspection(const std::string& path, const volume_inspection& is,
                              const std::array<uint8_t, 16>& machine);
json to_json(const std::string& path, const volume_inspection& is);

struct inspected_volume {
  offline_volume volume; ///< holds the lock of the volume
  volume_inspection is;
};

/// Opens a volume for read-only commands.
outcome<inspected_volume> open_and_inspect(const std::string& path);

/// Describes why these files are not one volume: one of several paths is missing or misplaced. Empty if they
/// are. Files of volumes on one path are independent.
std::string describe_mismatch(const std::vector<std::string>& paths,
                              const std::vector<inspected_volume>& volumes);

/// Prints one value for one file, `{"paths": [...]}` for several.
void print_json_of_paths(console& to, std::vector<json> values);

/// Returns the failure for a volume that cannot be used: `usage` for a path that is not a volume, otherwise
/// `failed`. Adds what to do if the text does not say it.
tl::unexpected<failure> disk_failure(const std::string& path, const error& e);

} // namespace terrace::cli
