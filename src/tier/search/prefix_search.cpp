#include "tier/search/prefix_search.hpp"

#include "base/tier_properties.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace terrace {

prefix_search::prefix_search(prefix_subject subject, object_source objects, std::span<const tier_kind> tiers)
    : of_(std::move(subject)), objects_(std::move(objects)) {
  shares_.reserve(tiers.size());
  for (tier_kind tier : tiers)
    shares_.push_back({tier, object_bitmap(objects_.size()), nullptr});
  if (of_.hold && !one_slice())
    for (size_t tier = 0; tier < shares_.size(); ++tier) {
      holds_.push_back(std::make_shared<object_hold>());
      holds_.back()->reserve(objects_.size());
    }
}

bool prefix_search::next_slice() {
  bool begins = probed_ == 0;
  if (shares_.empty() || probed_ == objects_.size() || (!begins && !chain_goes_on()))
    return false;
  first_ = probed_;
  // Places before the first held object are filled slice by slice, because filling a million at once would be
  // a long turn.
  for (const hold_ptr& hold : holds_)
    hold->keep_first(first_);
  now_ = {};
  memory_gap_ = memory_gap_ || (!begins && in_memory_now_.count() != in_memory_now_.size());
  slice_ = object_bitmap(std::min(slice_objects, objects_.size() - first_));
  in_memory_now_ = object_bitmap(slice_.size());
  probed_ += slice_.size();
  return true;
}

/// In spaces with trailing pools a prefix may continue behind anything that is missing here.
bool prefix_search::chain_goes_on() const {
  return has_trailing_pools(of_.space->spec) || slice_.count() == slice_.size();
}

bool prefix_search::probes_note_access() const { return one_slice() && !has_trailing_pools(of_.space->spec); }

std::optional<probe_request> prefix_search::probe(size_t tier, bool copies) {
  const size_t from = copies ? 0 : first_wanted(tier);
  if (from == slice_.size())
    return std::nullopt;
  if (!now_.objects)
    now_ = objects_.cut(first_, slice_objects);
  asked_from_[tier] = from;
  return probe_request{now_.objects,
                       of_.hold,
                       of_.note_access && probes_note_access(),
                       {now_.range.first + from, now_.range.count - from},
                       chunk_layout(of_.space->spec).objects_per_chunk(),
                       of_.counts};
}

/// Tiers are in the order of their speed, except that the GPU tier comes after host memory although it is faster. A lease
/// holds in host memory only what is before the first gap there, and the process of a GPU may end: so what is behind the
/// gap is held below, whoever has it as well.
size_t prefix_search::first_wanted(size_t tier) const {
  const tier_kind kind = shares_[tier].tier;
  if (kind == memory_tier || faster_than_memory(kind))
    return 0;
  if (!of_.hold)
    return first_absent(slice_);
  return memory_gap_ ? 0 : first_absent(in_memory_now_);
}

/// `from` is the first of the slice's objects that `present` is about.
void prefix_search::add_present(size_t tier, object_bitmap present, size_t from) {
  shares_[tier].present.merge(first_ + from, present);
  slice_.merge(from, present);
}

/// Returns the first absent object of a slice, rounded down to whole words of a bitmap.
size_t prefix_search::first_absent(const object_bitmap& slice) {
  auto words = slice.words();
  size_t first = 0;
  while (first < words.size() && words[first] == ~uint64_t{0})
    ++first;
  return slice.count() == slice.size() ? slice.size() : first * 64;
}

void prefix_search::add(size_t tier, probe_answer found) {
  const size_t from = asked_from_[tier];
  if (shares_[tier].tier == memory_tier)
    in_memory_now_ = found.present;
  add_present(tier, std::move(found.present), from);
  if (!found.held)
    return;
  if (shares_[tier].tier == memory_tier)
    for (const object_place& place : found.held->places())
      bytes_in_memory_ += place.physical_bytes; // 0 if it is absent
  shares_[tier].held_bytes = found.held_bytes;
  hold_ptr& held = shares_[tier].held;
  if (one_slice() && from == 0) {
    held = std::move(found.held);
    return;
  }
  held = one_slice() ? std::make_shared<object_hold>() : holds_[tier];
  held->append(first_ + from, std::move(*found.held));
}

/// Returns which of the slice's objects from `from` on are present.
std::optional<object_bitmap> prefix_search::present_in(const tier_index& index, size_t from) const {
  size_t first = first_ + from, count = slice_.size() - from;
  if (auto part = objects_.chunks(first, count))
    return index.try_probe(part->like, part->chunks);
  std::array<object_key, slice_objects> room;
  return index.try_probe(objects_.keys(first, count, room));
}

std::optional<prefix_search::counted> prefix_search::read(size_t tier, const tier_index& index) {
  if (of_.hold)
    return std::nullopt;
  size_t from = first_wanted(tier);
  if (from == slice_.size())
    return counted{};
  auto present = present_in(index, from);
  if (!present)
    return std::nullopt;
  size_t hits = present->count(), objects = present->size();
  add_present(tier, std::move(*present), from);
  return of_.counts ? counted{hits, objects - hits} : counted{};
}

found_prefix prefix_search::take() {
  of_.note_access = of_.note_access && !probes_note_access();
  return {std::move(of_), std::move(shares_), probed_};
}

} // namespace terrace
