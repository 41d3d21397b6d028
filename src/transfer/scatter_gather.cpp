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
                                       " objects; give one per object, or none");
  scatter_gather made;
  made.first_run_.reserve(object_bytes.size() + 1);
  size_t at = 0;
  for (size_t i = 0; i < object_bytes.size(); ++i) {
    made.first_run_.push_back(at);
    size_t count = runs_per_object.empty() ? 1 : runs_per_object[i];
    if (count > runs.size() - at)
      return fail(errc::bad_request,
                  "object " + std::to_string(i) + " has no run: " + std::to_string(runs.size()) +
                      " runs were given for " + std::to_string(object_bytes.size()) + " objects");
    uint64_t sum = 0;
    for (size_t r = at; r < at + count; ++r) {
      const region_run& run = runs[r];
      uint64_t bytes = 0;
      if (run.count == 0 || run.bytes == 0 || !inside(run, region_bytes))
        return fail(errc::bad_request,
                    "run " + std::to_string(r) + " (offset " + std::to_string(run.offset) + ", " +
                        std::to_string(run.count) + " pieces of " + std::to_string(run.bytes) +
                        " bytes, stride " + std::to_string(run.stride) +
                        ") is empty or exceeds the region of " + std::to_string(region_bytes) + " bytes");
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
                std::to_string(runs.size()) + " runs were given, but the objects need " + std::to_string(at));
  made.first_run_.push_back(at);
  made.runs_.assign(runs.begin(), runs.end());
  return made;
}

piece_cursor::range piece_cursor::here() const {
  const region_run& run = runs_.front();
  if (run.stride == run.bytes)
    return {run.offset + piece_ * run.stride, (run.count - piece_) * run.bytes};
  return {run.offset + piece_ * run.stride, run.bytes};
}

void piece_cursor::advance() {
  const region_run& run = runs_.front();
  if (run.stride != run.bytes && ++piece_ != run.count)
    return;
  runs_ = runs_.subspan(1);
  piece_ = 0;
}

std::optional<object_piece> piece_cursor::next() {
  if (runs_.empty())
    return std::nullopt;
  range first = here();
  object_piece piece{object_offset_, first.offset, first.bytes};
  advance();
  while (!runs_.empty() && here().offset == piece.region_offset + piece.bytes) {
    piece.bytes += here().bytes;
    advance();
  }
  object_offset_ += piece.bytes;
  return piece;
}

uint64_t scatter_gather::piece_count(size_t object) const {
  uint64_t count = 0, end = 0;
  for (const region_run& run : runs(object)) {
    bool continues = count != 0 && run.offset == end;
    count += (run.stride == run.bytes ? 1 : run.count) - (continues ? 1 : 0);
    end = run.offset + (run.count - 1) * run.stride + run.bytes;
  }
  return count;
}

uint64_t scatter_gather::bytes(size_t object) const {
  uint64_t sum = 0;
  for (const region_run& run : runs(object))
    sum += run.count * run.bytes;
  return sum;
}

} // namespace terrace
