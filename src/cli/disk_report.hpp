// What `terrace disk` finds in a store, for people and for programs.
#pragma once

#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "storage/offline_store.hpp"
#include "storage/store_inspection.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

/// `machine`: of whoever looks, to tell whether the store belongs to it.
std::string format_inspection(const std::string& path, const store_inspection& is,
                              const std::array<uint8_t, 16>& machine);
json to_json(const std::string& path, const store_inspection& is);

struct inspected_store {
  offline_store store; ///< locked
  store_inspection is;
};

/// For commands that only read.
outcome<inspected_store> open_and_inspect(const std::string& path);

/// What is wrong with these files as one store, or empty: one of several paths is missing, or not in its place. Files of stores
/// on one path have nothing to do with each other.
std::string describe_mismatch(const std::vector<std::string>& paths,
                              const std::vector<inspected_store>& stores);

/// One value for one file, `{"paths": [...]}` for several.
void print_json_of_paths(console& to, std::vector<json> values);

/// How `terrace disk` ends when a store cannot be worked on: `usage` for a path that is no store, else `failed`. Says what
/// to do where the text does not.
tl::unexpected<failure> disk_failure(const std::string& path, const error& e);

} // namespace terrace::cli
