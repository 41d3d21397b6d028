#include "transfer/scatter_gather.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace terrace {

namespace {

/// True if offset + (count - 1) * stride + bytes is inside the region; cannot overflow.
bool inside(const region_run& run, uint64_t region_bytes) {
  uint64_t reach = 0;
  if (run.is_skipped())
    return run.count == 1;
  return !__builtin_mul_overflow(run.count - 1, run.stride, &reach) &&
         !__builtin_add_overflow(reach, run.offset, &reach) &&
         !__builtin_add_overflow(reach, run.bytes, &reach) && reach <= region_bytes;
}

} // namespace

scatter_gather_maker::scatter_gather_maker(input source) : of_(std::move(source)) {
  made_.runs_ = of_.runs;
  made_.owner_ = of_.owner;
  made_.first_run_.reserve(of_.object_bytes.size() + 1);
}

result<void> scatter_gather_maker::open_object() {
  left_ = of_.runs_per_object.empty() ? 1 : of_.runs_per_object[object_];
  if (left_ > of_.runs.size() - at_)
    return fail(errc::bad_request,
                "object " + std::to_string(object_) + " has no run: " + std::to_string(of_.runs.size()) +
                    " runs were given for " + std::to_string(of_.object_bytes.size()) + " objects");
  made_.first_run_.push_back(static_cast<uint32_t>(at_));
  sum_ = 0;
  open_ = true;
  return {};
}

result<void> scatter_gather_maker::add(const region_run& run) {
  if (run.count == 0 || run.bytes == 0 || !inside(run, of_.region_bytes))
    return fail(errc::bad_request, "run " + std::to_string(at_) + " (offset " + std::to_string(run.offset) +
                                       ", " + std::to_string(run.count) + " pieces of " +
                                       std::to_string(run.bytes) + " bytes, stride " +
                                       std::to_string(run.stride) + ") is empty or exceeds the region of " +
                                       std::to_string(of_.region_bytes) + " bytes");
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(run.count, run.bytes, &bytes) || __builtin_add_overflow(sum_, bytes, &sum_))
    return fail(errc::bad_request, "run " + std::to_string(at_) + " is longer than any object");
  if (run.count > of_.pieces_max - pieces_)
    return fail(errc::bad_request, "expected at most " + std::to_string(of_.pieces_max) +
                                       " pieces in all runs of a request, got more");
  made_.skips_ = made_.skips_ || run.is_skipped();
  pieces_ += run.count;
  ++at_;
  --left_;
  return {};
}

result<void> scatter_gather_maker::close_object() {
  if (sum_ != of_.object_bytes[object_])
    return fail(errc::bad_request, "the runs of object " + std::to_string(object_) + " hold " +
                                       std::to_string(sum_) + " bytes, the object has " +
                                       std::to_string(of_.object_bytes[object_]));
  ++object_;
  open_ = false;
  return {};
}

result<bool> scatter_gather_maker::step(size_t runs_max) {
  size_t objects = of_.object_bytes.size();
  if (!of_.runs_per_object.empty() && of_.runs_per_object.size() != objects)
    return fail(errc::bad_request, "runs_per_object has " + std::to_string(of_.runs_per_object.size()) +
                                       " entries for " + std::to_string(objects) +
                                       " objects; give one per object, or none");
  for (size_t done = 0; object_ != objects; ++done) {
    if (done >= runs_max)
      return false;
    auto ok = open_ ? result<void>() : open_object();
    if (ok && left_ != 0)
      ok = add(of_.runs[at_]);
    if (ok && left_ == 0)
      ok = close_object();
    if (!ok)
      return tl::unexpected(ok.error());
  }
  if (at_ != of_.runs.size())
    return fail(errc::bad_request, std::to_string(of_.runs.size()) +
                                       " runs were given, but the objects need " + std::to_string(at_));
  made_.first_run_.push_back(static_cast<uint32_t>(at_));
  return true;
}

result<scatter_gather> scatter_gather::make(std::span<const region_run> runs,
                                            std::span<const uint32_t> runs_per_object,
                                            std::span<const uint64_t> object_bytes, uint64_t region_bytes) {
  auto copied = std::make_shared<const std::vector<region_run>>(runs.begin(), runs.end());
  scatter_gather_maker maker({*copied, runs_per_object, copied, object_bytes, region_bytes});
  auto done = maker.step(SIZE_MAX);
  if (!done)
    return tl::unexpected(done.error());
  return maker.take();
}

piece_cursor::piece_cursor(std::span<const region_run> runs, payload_range part)
    : runs_(runs), object_offset_(part.begin), end_(part.end) {
  uint64_t before = part.begin;
  while (!runs_.empty() && before >= runs_.front().count * runs_.front().bytes) {
    before -= runs_.front().count * runs_.front().bytes;
    runs_ = runs_.subspan(1);
  }
  if (before != 0 && !runs_.empty()) {
    piece_ = before / runs_.front().bytes;
    within_ = before % runs_.front().bytes;
  }
}

piece_cursor::range piece_cursor::here() const {
  const region_run& run = runs_.front();
  uint64_t begin = run.offset + piece_ * run.stride + within_;
  if (run.stride == run.bytes)
    return {begin, (run.count - piece_) * run.bytes - within_};
  return {begin, run.bytes - within_};
}

void piece_cursor::advance() {
  const region_run& run = runs_.front();
  within_ = 0;
  if (run.stride != run.bytes && ++piece_ != run.count)
    return;
  runs_ = runs_.subspan(1);
  piece_ = 0;
}

std::optional<object_piece> piece_cursor::next() {
  while (!runs_.empty() && runs_.front().is_skipped()) {
    object_offset_ += runs_.front().bytes - std::exchange(within_, 0);
    runs_ = runs_.subspan(1);
  }
  if (runs_.empty() || object_offset_ >= end_)
    return std::nullopt;
  range first = here();
  object_piece piece{object_offset_, first.offset, first.bytes};
  advance();
  while (!runs_.empty() && here().offset == piece.region_offset + piece.bytes) {
    piece.bytes += here().bytes;
    advance();
  }
  piece.bytes = std::min(piece.bytes, end_ - object_offset_);
  object_offset_ += piece.bytes;
  return piece;
}

scatter_gather::content scatter_gather::count(size_t object, payload_range part) const {
  content sum;
  uint64_t at = 0;                        // of the payload, where the run begins
  uint64_t reached = region_run::skipped; // in the region, by the pieces so far
  for (const region_run& run : runs(object)) {
    const uint64_t all = run.count * run.bytes;
    const uint64_t begin = std::clamp(part.begin, at, at + all) - at;
    const uint64_t end = std::clamp(part.end, at, at + all) - at;
    at += all;
    if (begin == end)
      continue;
    if (run.is_skipped()) {
      reached = region_run::skipped;
      continue;
    }
    auto place = [&run](uint64_t offset) {
      return run.offset + offset / run.bytes * run.stride + offset % run.bytes;
    };
    const bool continues = place(begin) == reached;
    sum.bytes += end - begin;
    sum.pieces +=
        (run.stride == run.bytes ? 1 : (end - 1) / run.bytes - begin / run.bytes + 1) - (continues ? 1 : 0);
    reached = place(end - 1) + 1;
  }
  return sum;
}

} // namespace terrace
