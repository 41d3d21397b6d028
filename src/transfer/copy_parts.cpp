#include "transfer/copy_parts.hpp"

#include "memory/region_populator.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

/// Parts begin at pages of the payload, as payloads do in the arena.
constexpr uint64_t boundary = 4096;

uint64_t bytes_of(const copy_request& what) {
  uint64_t bytes = 0;
  for (const copied_object& object : what.objects)
    bytes += object.bytes;
  return bytes;
}

/// A place between two parts: inside an object, or before its first byte.
struct place {
  size_t object = 0;
  uint64_t byte = 0;

  bool operator==(const place&) const = default;
};

/// Goes through a copy from the beginning to its end.
class divider {
 public:
  explicit divider(const copy_request& what) : what_(what) {}

  /// The boundary nearest to so many bytes of all; they do not become less from call to call.
  place at(uint64_t bytes) {
    while (object_ != what_.objects.size() && before_ + what_.objects[object_].bytes <= bytes)
      before_ += what_.objects[object_++].bytes;
    if (object_ == what_.objects.size())
      return {object_, 0};
    const uint64_t within = bytes - before_, all = what_.objects[object_].bytes;
    if (what_.checksums)
      return {object_ + (within > all / 2 ? 1 : 0), 0};
    return {object_, before_new_slice(within - within % boundary)};
  }

 private:
  /// A large page that a load may have to make is of one part.
  uint64_t before_new_slice(uint64_t within) const {
    const region_ahead* ahead = what_.outside.ahead;
    if (ahead == nullptr || what_.direction != copy_direction::out_of_arena)
      return within;
    const auto here = piece_at(within);
    const uint64_t more = here ? here->region_offset % region_ahead::slice_bytes : 0;
    if (more == 0 || more > within || !ahead->is_new(here->region_offset - more))
      return within;
    const auto first = piece_at(within - more);
    const bool adjacent = first && first->bytes >= more && first->region_offset + more == here->region_offset;
    return adjacent ? within - more : within;
  }
  /// From that byte of the object on.
  std::optional<object_piece> piece_at(uint64_t within) const {
    return what_.runs->pieces(what_.objects[object_].number, {within, UINT64_MAX}).next();
  }

  const copy_request& what_;
  size_t object_ = 0;
  uint64_t before_ = 0; ///< bytes of the objects before that
};

copy_request part_between(const copy_request& what, const place& begin, const place& end) {
  copy_request part;
  part.direction = what.direction;
  part.outside = what.outside;
  part.runs = what.runs;
  part.checksums = what.checksums;
  part.arrived = what.arrived;
  part.context = what.context;
  part.owners = what.owners;
  const auto first = what.objects.begin();
  const size_t after = end.object + (end.byte != 0 ? 1 : 0);
  part.objects.assign(first + static_cast<ptrdiff_t>(begin.object), first + static_cast<ptrdiff_t>(after));
  part.begin = begin.byte;
  part.end = end.byte != 0 ? end.byte : UINT64_MAX;
  return part;
}

} // namespace

size_t copy_parts_max(const copy_request& what) {
  uint64_t parts = bytes_of(what) / copy_part_bytes_min;
  if (what.checksums)
    parts = std::min<uint64_t>(parts, what.objects.size());
  return std::max<uint64_t>(parts, 1);
}

std::vector<copy_request> parts_of(copy_request what, size_t count) {
  assert(!what.arena && !what.generations.page && !what.parts);
  std::vector<copy_request> parts;
  const uint64_t all = bytes_of(what);
  divider places(what);
  place begin;
  for (size_t i = 1; i < count; ++i) {
    const place end = places.at(all / count * i);
    if (end == begin || end.object == what.objects.size())
      continue;
    parts.push_back(part_between(what, begin, end));
    begin = end;
  }
  if (parts.empty()) {
    parts.push_back(std::move(what));
    return parts;
  }
  parts.push_back(part_between(what, begin, {what.objects.size(), 0}));
  auto shared = std::make_shared<copy_parts>(parts.size());
  for (copy_request& part : parts)
    part.parts = shared;
  return parts;
}

copy_answer joined(std::vector<copy_answer> answers) {
  assert(!answers.empty());
  copy_answer whole = std::move(answers.front());
  for (size_t i = 1; i < answers.size(); ++i) {
    copy_answer& part = answers[i];
    whole.bytes += part.bytes;
    whole.checksums.insert(whole.checksums.end(), part.checksums.begin(), part.checksums.end());
    // Those that were stopped by the failure of another part are `cancelled`.
    const errc now = whole.failure.code;
    if (now == errc::ok || (now == errc::cancelled && part.failure.code != errc::ok))
      whole.failure = std::move(part.failure);
  }
  return whole;
}

} // namespace terrace
