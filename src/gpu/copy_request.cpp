#include "gpu/copy_request.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace terrace::gpu {

namespace {

/// True if `count` pieces at `offset`, `offset + stride` and so on end before `limit`. Compares remainders,
/// so that nothing overflows.
bool fits(uint64_t offset, uint64_t stride, uint64_t bytes, uint64_t count, uint64_t limit) {
  if (offset > limit || bytes > limit - offset)
    return false;
  uint64_t left = limit - offset - bytes;
  return count == 1 || (stride >= bytes && stride <= left / (count - 1));
}

} // namespace

uint64_t bytes_of(const copy_part& part) {
  uint64_t bytes = 0;
  for (const auto& one : part.copies)
    bytes += one.bytes * one.count;
  return bytes;
}

result<void> check(const copy_request& request, uint64_t region_bytes, uint64_t object_bytes,
                   uint32_t slots) {
  if (request.parts.empty() || request.parts.size() > parts_per_request_max)
    return fail(errc::bad_request, "a request of " + std::to_string(request.parts.size()) + " parts; 1 to " +
                                       std::to_string(parts_per_request_max) + " are allowed");
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const auto& part = request.parts[i];
    auto wrong = [&](const std::string& text) {
      return fail(errc::bad_request, "part " + std::to_string(i) + ": " + text);
    };
    uint64_t pieces = 0;
    for (const auto& one : part.copies) {
      if (one.bytes == 0 || one.count == 0 || one.count > pieces_per_part_max)
        return wrong("a copy of " + std::to_string(one.count) + " pieces of " + std::to_string(one.bytes) +
                     " bytes");
      if (!fits(one.region_offset, one.region_stride, one.bytes, one.count, region_bytes))
        return wrong("leaves the region of " + std::to_string(region_bytes) +
                     " bytes, or its pieces overlap");
      if (!fits(one.object_offset, one.object_stride, one.bytes, one.count, object_bytes))
        return wrong("leaves the object of " + std::to_string(object_bytes) +
                     " bytes, or its pieces overlap");
      pieces += one.count;
    }
    if ((part.copies.empty() && !part.signal) || pieces > pieces_per_part_max)
      return wrong(std::to_string(pieces) + " pieces; 1 to " + std::to_string(pieces_per_part_max) +
                   " are allowed");
    if (part.signal && part.signal->slot >= slots)
      return wrong("signals slot " + std::to_string(part.signal->slot) + " of " + std::to_string(slots));
  }
  if (request.await && request.await->slot >= slots)
    return fail(errc::bad_request,
                "awaits slot " + std::to_string(request.await->slot) + " of " + std::to_string(slots));
  return {};
}

result<std::shared_ptr<completion_queue>> completion_queue::make() {
  unique_fd descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor)
    return fail(errc::no_space, "no descriptor for a stream's completions");
  return std::shared_ptr<completion_queue>(new completion_queue(std::move(descriptor)));
}

void completion_queue::push(over_part part) {
  {
    std::lock_guard lock(mutex_);
    parts_.push_back(std::move(part));
  }
  signal();
}

void completion_queue::push(std::span<const uint64_t> tickets) {
  {
    std::lock_guard lock(mutex_);
    for (uint64_t ticket : tickets)
      parts_.push_back({ticket, {}});
  }
  signal();
}

void completion_queue::signal() {
  uint64_t one = 1;
  // The write fails only with 2^64 - 2 pending signals, and then the descriptor is readable anyway.
  [[maybe_unused]] auto written = write(descriptor_.get(), &one, sizeof one);
}

std::vector<over_part> completion_queue::take() {
  uint64_t count = 0;
  // The counter is read first: a part that arrives in between makes the descriptor readable again.
  [[maybe_unused]] auto bytes = read(descriptor_.get(), &count, sizeof count);
  std::lock_guard lock(mutex_);
  return std::exchange(parts_, {});
}

} // namespace terrace::gpu
