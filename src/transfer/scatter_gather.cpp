#include "transfer/scatter_gather.hpp"

#include <string>

namespace terrace {

namespace {

/// True if offset + (count - 1) * stride + bytes is inside the region; cannot overflow.
bool inside(const region_run& run, uint64_t region_bytes) {
  uint64_t reach = 0;
  return !__builtin_mul_overflow(run.count - 1, run.stride, &reach) &&
         !__builtin_add_overflow(reach, run.offset, &reach) &&
         !__builtin_add_overflow(reach, run.bytes, &reach) && reach <= region_bytes;
}

} // namespace

result<scatter_gather> scatter_gather::make(std::span<const region_run> runs,
                                            std::span<const uint32_t> runs_per_object,
                                            std::span<const uint64_t> object_bytes, uint64_t region_bytes) {
  if (!runs_per_object.empty() && runs_per_object.size() != object_bytes.size())
    return fail(errc::bad_request, "runs_per_object has " + std::to_string(runs_per_object.size()) +
                                       " entries for " + std::to_string(object_bytes.size()) +
                                       " objects; give one each, or none");
  scatter_gather made;
  made.first_run_.reserve(object_bytes.size() + 1);
  size_t at = 0;
  for (size_t i = 0; i < object_bytes.size(); ++i) {
    made.first_run_.push_back(at);
    size_t count = runs_per_object.empty() ? 1 : runs_per_object[i];
    if (count > runs.size() - at)
      return fail(errc::bad_request, "object " + std::to_string(i) +
                                         " has no run: " + std::to_string(runs.size()) + " runs came for " +
                                         std::to_string(object_bytes.size()) + " objects");
    uint64_t sum = 0;
    for (size_t r = at; r < at + count; ++r) {
      const region_run& run = runs[r];
      uint64_t bytes = 0;
      if (run.count == 0 || run.bytes == 0 || !inside(run, region_bytes))
        return fail(errc::bad_request,
                    "run " + std::to_string(r) + " (offset " + std::to_string(run.offset) + ", " +
                        std::to_string(run.count) + " pieces of " + std::to_string(run.bytes) +
                        " bytes, stride " + std::to_string(run.stride) +
                        ") is empty or leaves the region of " + std::to_string(region_bytes) + " bytes");
      if (__builtin_mul_overflow(run.count, run.bytes, &bytes) || __builtin_add_overflow(sum, bytes, &sum))
        return fail(errc::bad_request, "run " + std::to_string(r) + " is longer than any object");
    }
    if (sum != object_bytes[i])
      return fail(errc::bad_request, "the runs of object " + std::to_string(i) + " hold " +
                                         std::to_string(sum) + " bytes, the object has " +
                                         std::to_string(object_bytes[i]));
    at += count;
  }
  if (at != runs.size())
    return fail(errc::bad_request,
                std::to_string(runs.size()) + " runs came, the objects take " + std::to_string(at));
  made.first_run_.push_back(at);
  made.runs_.assign(runs.begin(), runs.end());
  return made;
}

std::vector<object_piece> scatter_gather::pieces(size_t object) const {
  std::vector<object_piece> list;
  uint64_t object_offset = 0;
  for (size_t r = first_run_[object]; r < first_run_[object + 1]; ++r) {
    const region_run& run = runs_[r];
    for (uint64_t i = 0; i < run.count; ++i) {
      uint64_t region_offset = run.offset + i * run.stride;
      if (!list.empty() && list.back().region_offset + list.back().bytes == region_offset)
        list.back().bytes += run.bytes;
      else
        list.push_back({object_offset, region_offset, run.bytes});
      object_offset += run.bytes;
    }
  }
  return list;
}

} // namespace terrace
