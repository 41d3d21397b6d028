#include "memory/allocator_registry.hpp"

#include "memory/arena_allocator.hpp"
#include "memory/buffer_allocator.hpp"
#include "memory/mixed_allocator.hpp"
#include "memory/paged_allocator.hpp"
#include "memory/size_class_allocator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace terrace {

namespace {

struct entry {
  std::string_view name;
  result<std::unique_ptr<allocator>> (*make)(const allocator_options&);
};

// A new allocator needs one line here.
constexpr std::array registry{
    entry{"buffer", &buffer_allocator::make},         entry{"free_list", &free_list_allocator::make},
    entry{"mixed", &mixed_allocator::make},           entry{"paged", &paged_allocator::make},
    entry{"size_class", &size_class_allocator::make},
};

constexpr auto names = [] {
  std::array<std::string_view, registry.size()> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = registry[i].name;
  return all;
}();

} // namespace

std::span<const std::string_view> allocator_names() { return names; }

result<std::unique_ptr<allocator>> make_allocator(std::string_view name, const allocator_options& options) {
  std::string known;
  for (const entry& e : registry) {
    if (e.name == name)
      return e.make(options);
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  return fail(errc::bad_request, "unknown allocator '" + std::string(name) + "': expected one of " + known);
}

result<void> validate_arena(const allocator_options& options) {
  uint64_t alignment = options.alignment_bytes;
  auto text = [](uint64_t n) { return std::to_string(n); };
  if (!std::has_single_bit(alignment))
    return fail(errc::bad_request, "alignment_bytes is " + text(alignment) + ": expected a power of two");
  if (options.capacity_bytes == 0 || options.capacity_bytes % alignment != 0)
    return fail(errc::bad_request, "capacity_bytes is " + text(options.capacity_bytes) +
                                       ": expected a multiple of alignment_bytes other than 0 (" +
                                       text(alignment) + ")");
  if (options.reserved_bytes % alignment != 0 || options.reserved_bytes >= options.capacity_bytes)
    return fail(errc::bad_request, "reserved_bytes is " + text(options.reserved_bytes) +
                                       ": expected a multiple of alignment_bytes (" + text(alignment) +
                                       ") that is less than capacity_bytes (" + text(options.capacity_bytes) +
                                       ")");
  if (options.boundary_bytes % alignment != 0)
    return fail(errc::bad_request, "boundary_bytes is " + text(options.boundary_bytes) +
                                       ": expected 0 or a multiple of alignment_bytes (" + text(alignment) +
                                       ")");
  return {};
}

result<uint64_t> total_physical(const allocator& from, std::span<const uint64_t> sizes) {
  uint64_t total = 0;
  for (uint64_t bytes : sizes) {
    if (bytes == 0 || bytes > from.largest_possible())
      return fail(errc::bad_request, "an object of " + std::to_string(bytes) +
                                         " bytes can never fit: expected 1 to " +
                                         std::to_string(from.largest_possible()));
    uint64_t physical = from.physical_size(bytes);
    total = total + physical < total ? ~uint64_t{0} : total + physical; // saturates: no arena is that large
  }
  return total;
}

tl::unexpected<error> fail_place(extent place, uint64_t requested) {
  return fail(errc::bad_request, "bytes " + std::to_string(place.offset) + " to " +
                                     std::to_string(place.offset + place.size) + " for an object of " +
                                     std::to_string(requested) +
                                     " bytes: expected a free place that this allocator could give");
}

tl::unexpected<error> fail_no_space(const allocator& from, size_t objects, uint64_t physical_bytes) {
  allocator_usage now = from.usage();
  return fail(errc::no_space, std::to_string(objects) + " objects of " + std::to_string(physical_bytes) +
                                  " bytes in total do not fit now: " + std::to_string(now.free_bytes) +
                                  " of " + std::to_string(now.capacity_bytes) +
                                  " bytes are free, the largest run has " +
                                  std::to_string(now.largest_free_run));
}

result<void> validate_growth(const allocator_options& options, uint64_t end, uint64_t bytes,
                             uint64_t gap_bytes) {
  if (bytes == 0 || bytes % options.alignment_bytes != 0)
    return fail(errc::bad_request, "an arena cannot grow by " + std::to_string(bytes) +
                                       " bytes: expected a multiple other than 0 of " +
                                       std::to_string(options.alignment_bytes));
  if (gap_bytes != 0 && (options.boundary_bytes == 0 || (end + gap_bytes) % options.boundary_bytes != 0))
    return fail(errc::bad_request, "a gap of " + std::to_string(gap_bytes) + " bytes behind " +
                                       std::to_string(end) + ": expected a gap that ends at a boundary");
  return {};
}

result<void> validate_segments(const allocator_options& options, extent range, uint64_t arena_end,
                               bool ends_there) {
  uint64_t unit = options.boundary_bytes == 0 ? options.alignment_bytes : options.boundary_bytes;
  uint64_t end = range.offset + range.size;
  bool begins = range.offset % unit == 0 ? range.offset >= options.reserved_bytes
                                         : range.offset == options.reserved_bytes;
  if (range.size == 0 || end < range.offset || end > arena_end || !begins || (end % unit != 0 && !ends_there))
    return fail(errc::bad_request, "bytes " + std::to_string(range.offset) + " to " + std::to_string(end) +
                                       " are not whole segments of the arena: expected multiples of " +
                                       std::to_string(unit) + ", or a segment's end");
  return {};
}

tl::unexpected<error> fail_retired_before(extent range) {
  return fail(errc::bad_request, "part of bytes " + std::to_string(range.offset) + " to " +
                                     std::to_string(range.offset + range.size) +
                                     " is already retired: expected each segment once");
}

std::vector<std::vector<size_t>> placing_orders(std::span<const uint64_t> sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<std::vector<size_t>> orders{order};
  if (!sizes.empty() && !std::equal(sizes.begin() + 1, sizes.end(), sizes.begin())) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
    orders.push_back(std::move(order));
  }
  return orders;
}

std::vector<extent> by_offset(std::span<const extent> extents) {
  std::vector<extent> sorted(extents.begin(), extents.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const extent& a, const extent& b) { return a.offset < b.offset; });
  return sorted;
}

} // namespace terrace
