#include "actors/gpu/daemon/device_slices.hpp"

#include <algorithm>
#include <functional>

namespace terrace::gpu {

namespace {

/// Extends the last copy if the piece has the same length and distance as the others.
bool continues(strided_copy& last, uint64_t region_offset, uint64_t at, uint64_t bytes) {
  if (last.bytes != bytes || last.count >= pieces_per_part_max)
    return false;
  if (last.count == 1) {
    if (region_offset < last.region_offset || region_offset - last.region_offset < bytes ||
        at != last.object_offset + bytes)
      return false;
    last.region_stride = region_offset - last.region_offset;
    last.object_stride = bytes;
  } else if (region_offset != last.region_offset + last.count * last.region_stride ||
             at != last.object_offset + last.count * last.object_stride) {
    return false;
  }
  ++last.count;
  return true;
}

uint64_t region_of(const std::optional<pinned_arenas::place>& place) { return place ? place->region : 0; }

void add_span(device_slice& slice, std::byte* inside, uint64_t bytes) {
  if (!slice.spans.empty() && slice.spans.back().inside + slice.spans.back().bytes == inside)
    slice.spans.back().bytes += bytes;
  else
    slice.spans.push_back({inside, bytes, slice.bytes});
}

} // namespace

device_slices::device_slices(const terrace::copy_request& request)
    : runs_(request.runs), objects_(request.objects), in_device_(request.arena != nullptr) {
  if (!in_device_)
    std::stable_sort(objects_.begin(), objects_.end(), [](const copied_object& a, const copied_object& b) {
      return std::less<>()(a.inside, b.inside);
    });
  open();
}

void device_slices::open() {
  piece_.reset();
  while (object_ != objects_.size()) {
    pieces_ = runs_->pieces(objects_[object_].number);
    piece_ = pieces_.next();
    if (piece_)
      return;
    ++object_; // an object without bytes
  }
}

void device_slices::next_piece() {
  piece_ = pieces_.next();
  if (piece_)
    return;
  ++object_;
  open();
}

std::optional<device_slice> device_slices::next(uint64_t bytes_max, const pinned_arenas* arenas) {
  if (!piece_)
    return std::nullopt;
  device_slice slice;
  for (size_t pieces = 0; piece_ && slice.bytes < bytes_max && pieces < pieces_max; ++pieces) {
    uint64_t bytes = std::min(piece_->bytes, bytes_max - slice.bytes);
    const copied_object& object = objects_[object_];
    auto pinned = arenas ? arenas->find(object.inside + piece_->object_offset) : std::nullopt;
    if (slice.bytes != 0 && region_of(pinned) != region_of(slice.pinned))
      break;
    slice.pinned = pinned;
    if (pinned)
      bytes = std::min(bytes, pinned->bytes);
    uint64_t at = in_device_ ? object.at + piece_->object_offset : pinned ? pinned->offset : slice.bytes;
    if (slice.copies.empty() || !continues(slice.copies.back(), piece_->region_offset, at, bytes)) {
      if (slice.copies.size() == copies_max)
        break;
      slice.copies.push_back({piece_->region_offset, at, bytes, 0, 0, 1});
    }
    if (!in_device_ && !pinned)
      add_span(slice, object.inside + piece_->object_offset, bytes);
    slice.bytes += bytes;
    piece_->object_offset += bytes;
    piece_->region_offset += bytes;
    piece_->bytes -= bytes;
    if (piece_->bytes == 0)
      next_piece();
  }
  return slice;
}

} // namespace terrace::gpu
