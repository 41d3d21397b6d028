#include "protocol/bounds.hpp"
#include "protocol/bounds_checks.hpp"

namespace terrace::protocol {

result<run_totals> check_runs(const run_vector& runs, uint64_t region_bytes) {
  if (auto ok = check_aligned("runs", &runs); !ok)
    return tl::unexpected<error>(ok.error());
  run_totals totals;
  for (const auto* run : runs) {
    uint64_t count = run->count(), bytes = run->bytes();
    if (count == 0 || bytes == 0 || bytes > object_bytes_max)
      return refuse("expected runs of at least one piece of 1 to " + std::to_string(object_bytes_max) +
                    " bytes, got " + std::to_string(count) + " pieces of " + std::to_string(bytes) +
                    " bytes");
    if (count > runs_max - totals.pieces)
      return refuse("expected at most " + std::to_string(runs_max) +
                    " pieces in all runs of a request, got more");
    if (run->offset() == run_skipped && count == 1) {
      ++totals.pieces;
      totals.bytes += bytes;
      continue;
    }
    // count <= 2^20, so a wrapped value to the left of / cannot slip through the comparison.
    bool inside = run->offset() <= region_bytes && bytes <= region_bytes - run->offset() &&
                  (count == 1 || run->stride() <= (region_bytes - run->offset() - bytes) / (count - 1));
    if (!inside)
      return refuse("expected runs inside the region of " + std::to_string(region_bytes) + " bytes, got " +
                    std::to_string(count) + " pieces of " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(run->offset()) + " with stride " + std::to_string(run->stride()));
    totals.pieces += count;
    totals.bytes += count * bytes; // at most 2^20 pieces of 2^30 bytes in total
  }
  return totals;
}

/// The verb checks longer lists, in slices, because half a million runs take milliseconds.
constexpr size_t runs_checked_max = 16'384;

result<void> check_run_lists(const run_vector& runs, const flatbuffers::Vector<uint32_t>* runs_per_object) {
  if (runs_per_object && runs_per_object->size() > runs.size())
    return refuse("expected at least one run for each object, got " + std::to_string(runs.size()) +
                  " runs for " + std::to_string(runs_per_object->size()) + " objects");
  if (runs.size() > runs_checked_max)
    return check_aligned("runs", &runs);
  if (auto totals = check_runs(runs, region_bytes_max); !totals)
    return tl::unexpected<error>(totals.error());
  if (!runs_per_object)
    return {};
  uint64_t sum = 0;
  for (uint32_t count : *runs_per_object) {
    if (count == 0)
      return refuse("expected at least one run for each object, got 0 in runs_per_object");
    sum += count;
  }
  if (sum != runs.size())
    return refuse("expected the sum of runs_per_object to be the number of runs, " +
                  std::to_string(runs.size()) + ", got " + std::to_string(sum));
  return {};
}

} // namespace terrace::protocol
