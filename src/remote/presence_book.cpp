#include "remote/presence_book.hpp"

#include "index/payload_checksum.hpp"

#include <algorithm>
#include <cassert>
#include <span>

namespace terrace::remote {

namespace {

constexpr std::chrono::milliseconds tick{100};

} // namespace

presence_book::presence_book(const presence_options& options)
    : options_(options), groups_(options.keys_max / group_size), entries_(new entry[groups_ * group_size]) {
  assert(groups_ != 0);
}

uint64_t presence_book::name_of(std::string_view key) {
  return payload_checksum(std::as_bytes(std::span(key)));
}

std::vector<belief> presence_book::of(std::span<const std::string> keys, time_point now) const {
  constexpr size_t line_bytes = 64;
  std::vector<uint64_t> names;
  names.reserve(keys.size());
  for (const std::string& key : keys) {
    names.push_back(name_of(key));
    const auto* group = reinterpret_cast<const char*>(group_of(names.back()));
    for (size_t at = 0; at < group_size * sizeof(entry); at += line_bytes)
      __builtin_prefetch(group + at);
  }
  std::vector<belief> all;
  all.reserve(keys.size());
  for (uint64_t name : names)
    all.push_back(of(name, now));
  return all;
}

belief presence_book::of(uint64_t name, time_point now) const {
  const entry* known = find(name);
  if (known == nullptr || tick * uint64_t{ticks(now) - known->since} >= lasts(*known))
    return belief::unknown;
  return known->what;
}

void presence_book::note(std::string_view key, belief what, time_point now) {
  uint64_t name = name_of(key);
  entry* place = find(name);
  if (place == nullptr) {
    entry* group = group_of(name);
    // An unused entry is older than any other.
    place = std::min_element(group, group + group_size, [](const entry& a, const entry& b) {
      return std::pair(a.what != belief::unknown, a.since) < std::pair(b.what != belief::unknown, b.since);
    });
    *place = {.name = name};
  }
  uint8_t failures =
      what == belief::failed && place->failures != UINT8_MAX ? place->failures + 1 : place->failures;
  *place = {.name = name,
            .since = ticks(now),
            .what = what,
            .failures = what == belief::failed ? failures : uint8_t{0}};
}

void presence_book::forget(std::string_view key) {
  if (entry* known = find(name_of(key)))
    *known = {};
}

void presence_book::forget_all() { std::fill_n(entries_.get(), capacity(), entry{}); }

presence_book::entry* presence_book::find(uint64_t name) const {
  entry* group = group_of(name);
  entry* found = std::find_if(group, group + group_size, [name](const entry& one) {
    return one.what != belief::unknown && one.name == name;
  });
  return found == group + group_size ? nullptr : found;
}

uint32_t presence_book::ticks(time_point now) const {
  if (first_ == time_point{})
    first_ = now;
  return static_cast<uint32_t>((now - first_) / tick); // 13 years
}

std::chrono::milliseconds presence_book::lasts(const entry& of) const {
  if (of.what == belief::present)
    return options_.present_for;
  if (of.what == belief::absent)
    return options_.absent_for;
  auto doublings = std::min<uint32_t>(of.failures - 1u, 16);
  return std::min(options_.first_pause * (uint32_t{1} << doublings), options_.longest_pause);
}

std::vector<size_t> prefix_probe::next() const {
  std::vector<size_t> asked;
  const size_t left = missing_ - found_;
  if (left == 0 || unknown_)
    return asked;
  if (first_) {
    for (size_t distance = 1; distance < left; distance *= 2)
      asked.push_back(distance - 1);
    asked.push_back(left - 1);
    return asked;
  }
  const size_t parts = std::min(left + 1, divides_by);
  for (size_t part = 1; part < parts; ++part)
    asked.push_back(found_ + part * (left + 1) / parts - 1);
  return asked;
}

void prefix_probe::is_missing(size_t chunk) {
  missing_ = std::min(missing_, chunk);
  found_ = std::min(found_, chunk);
}

void prefix_probe::answered(const std::vector<belief>& what) {
  const auto asked = next();
  assert(what.size() == asked.size());
  first_ = false;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (what[i] == belief::present) {
      found_ = asked[i] + 1;
      continue;
    }
    if (what[i] == belief::unknown)
      unknown_ = true;
    else
      missing_ = asked[i];
    return;
  }
}

} // namespace terrace::remote
