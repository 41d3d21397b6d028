#include "bench/baseline_spaces.hpp"

namespace terrace::bench {

tlsf_baseline::tlsf_baseline(uint64_t capacity) : page_space(capacity), runs_(capacity / page + 1) {
  heads_.fill(none);
  runs_[0].pages = static_cast<uint32_t>(capacity / page);
  link(0);
}

uint32_t tlsf_baseline::list_of(uint32_t pages) {
  uint32_t first = static_cast<uint32_t>(std::bit_width(pages)) - 1;
  uint32_t second = first <= second_bits ? (pages << (second_bits - first)) : pages >> (first - second_bits);
  return first << second_bits | (second & ((1U << second_bits) - 1));
}

void tlsf_baseline::link(uint32_t at) {
  run& r = runs_[at];
  uint32_t list = list_of(r.pages);
  r.is_free = true;
  r.previous = none;
  r.next = heads_[list];
  if (r.next != none)
    runs_[r.next].previous = at;
  heads_[list] = at;
  first_level_ |= 1U << (list >> second_bits);
  second_level_[list >> second_bits] |= 1U << (list & 31);
  free_pages_ += r.pages;
}

void tlsf_baseline::unlink(uint32_t at) {
  run& r = runs_[at];
  uint32_t list = list_of(r.pages);
  r.is_free = false;
  if (r.next != none)
    runs_[r.next].previous = r.previous;
  if (r.previous != none) {
    runs_[r.previous].next = r.next;
  } else {
    heads_[list] = r.next;
    if (r.next == none) {
      second_level_[list >> second_bits] &= ~(1U << (list & 31));
      if (second_level_[list >> second_bits] == 0)
        first_level_ &= ~(1U << (list >> second_bits));
    }
  }
  free_pages_ -= r.pages;
}

std::optional<extent> tlsf_baseline::take(uint64_t bytes) {
  uint32_t pages = static_cast<uint32_t>((bytes + page - 1) / page);
  // Starts at the first list in which every run is long enough: the size rounded up to the begin of a list.
  uint32_t first = static_cast<uint32_t>(std::bit_width(pages)) - 1;
  uint32_t rounded = first > second_bits ? pages + (1U << (first - second_bits)) - 1 : pages;
  uint32_t list = list_of(rounded);
  uint32_t level = list >> second_bits;
  uint32_t lists_there = second_level_[level] & (~0U << (list & 31));
  if (lists_there == 0) {
    uint32_t levels = level == 31 ? 0 : first_level_ & (~0U << (level + 1));
    if (levels == 0)
      return std::nullopt;
    level = static_cast<uint32_t>(std::countr_zero(levels));
    lists_there = second_level_[level];
  }
  uint32_t at = heads_[level << second_bits | static_cast<uint32_t>(std::countr_zero(lists_there))];
  unlink(at);
  run& r = runs_[at];
  if (r.pages > pages) {
    uint32_t rest = at + pages;
    runs_[rest].pages = r.pages - pages;
    runs_[rest].before = at;
    runs_[rest + runs_[rest].pages].before = rest;
    r.pages = pages;
    link(rest);
  }
  return extent{at * page, pages * page};
}

void tlsf_baseline::give(const extent& e) {
  uint32_t at = static_cast<uint32_t>(e.offset / page);
  uint32_t behind = at + runs_[at].pages;
  if (behind < runs_.size() - 1 && runs_[behind].is_free) {
    unlink(behind);
    runs_[at].pages += runs_[behind].pages;
  }
  uint32_t before = runs_[at].before;
  if (before != none && runs_[before].is_free) {
    unlink(before);
    runs_[before].pages += runs_[at].pages;
    at = before;
  }
  runs_[at + runs_[at].pages].before = at;
  link(at);
}

buddy_baseline::buddy_baseline(uint64_t capacity) : page_space(capacity), blocks_(capacity / page) {
  free_pages_ = capacity / page;
  heads_.fill(none);
  link(0, static_cast<uint32_t>(std::countr_zero(free_pages_)));
}

void buddy_baseline::link(uint32_t at, uint32_t order) {
  blocks_[at] = {heads_[order], none, static_cast<uint8_t>(order)};
  if (heads_[order] != none)
    blocks_[heads_[order]].previous = at;
  heads_[order] = at;
}

void buddy_baseline::unlink(uint32_t at) {
  block& b = blocks_[at];
  if (b.next != none)
    blocks_[b.next].previous = b.previous;
  if (b.previous != none)
    blocks_[b.previous].next = b.next;
  else
    heads_[b.order] = b.next;
  b.order = taken;
}

std::optional<extent> buddy_baseline::take(uint64_t bytes) {
  uint64_t pages = std::bit_ceil((bytes + page - 1) / page);
  uint32_t wanted = static_cast<uint32_t>(std::countr_zero(pages)), order = wanted;
  while (order < heads_.size() && heads_[order] == none)
    ++order;
  if (order == heads_.size())
    return std::nullopt;
  uint32_t at = heads_[order];
  unlink(at);
  while (order > wanted) {
    --order;
    link(at + (1U << order), order);
  }
  free_pages_ -= pages;
  return extent{at * page, pages * page};
}

void buddy_baseline::give(const extent& e) {
  uint32_t at = static_cast<uint32_t>(e.offset / page);
  uint32_t order = static_cast<uint32_t>(std::countr_zero(e.size / page));
  free_pages_ += e.size / page;
  while ((uint64_t{1} << order) < blocks_.size()) {
    uint32_t buddy = at ^ (1U << order);
    if (blocks_[buddy].order != order)
      break;
    unlink(buddy);
    at &= ~(1U << order);
    ++order;
  }
  link(at, order);
}

} // namespace terrace::bench
