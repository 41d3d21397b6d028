// Copies as tests ask for them.
#pragma once

#include "transfer/copy_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace terrace::test {

/// What is in memory at that offset.
inline std::byte counted(size_t offset) { return static_cast<std::byte>(offset % 251); }

/// An object at `inside`, whose bytes are in these runs of the region.
struct placed_object {
  std::byte* inside;
  std::vector<region_run> runs;
};

inline copy_request request(copy_direction direction, outside_memory outside,
                            const std::vector<placed_object>& objects) {
  copy_request made;
  made.direction = direction;
  made.outside = std::move(outside);
  std::vector<region_run> runs;
  std::vector<uint32_t> per_object;
  std::vector<uint64_t> sizes;
  for (const placed_object& object : objects) {
    made.objects.push_back({object.inside, made.objects.size()});
    runs.insert(runs.end(), object.runs.begin(), object.runs.end());
    per_object.push_back(static_cast<uint32_t>(object.runs.size()));
    sizes.push_back(0);
    for (const region_run& run : object.runs)
      sizes.back() += run.bytes * run.count;
  }
  made.runs = std::make_shared<const scatter_gather>(
      scatter_gather::make(runs, per_object, sizes, made.outside.bytes).value());
  return made;
}

} // namespace terrace::test
