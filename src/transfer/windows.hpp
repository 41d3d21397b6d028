// A transfer processes its objects in windows, so that it holds at most its share of an arena.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "index/object_header.hpp"
#include "tier/objects/scope_objects.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

/// Objects of a window: a tier, an allocator and a policy process them in one turn each.
constexpr size_t window_objects_max = 1024;

/// The end of the window that begins at `begin`: whole chunks of `objects_per_chunk` objects, at most `bytes_max` bytes
/// and `window_objects_max` objects, but at least one chunk. `begin` is a multiple of `objects_per_chunk`. `held_bytes`:
/// what an object of so many bytes takes of the arena.
template <class HeldBytes>
size_t window_end(std::span<const uint64_t> object_bytes, size_t begin, size_t objects_per_chunk,
                  uint64_t bytes_max, HeldBytes held_bytes) {
  uint64_t bytes = 0;
  size_t end = begin;
  while (end < object_bytes.size()) {
    for (size_t i = 0; i < objects_per_chunk; ++i)
      bytes += held_bytes(object_bytes[end + i]);
    if (end != begin && (bytes > bytes_max || end + objects_per_chunk - begin > window_objects_max))
      break;
    end += objects_per_chunk;
  }
  return end;
}

/// Objects [begin, end) of a transfer.
struct transfer_window {
  size_t begin = 0;
  size_t end = 0;
  batch_ptr objects;
  size_t size() const { return end - begin; }
};

/// Whole chunks starting at object `begin`: at most `bytes_max` of the arena, headers and padding included, at least one.
inline transfer_window window_at(const batch_ptr& objects, size_t objects_per_chunk, size_t begin,
                                 uint64_t bytes_max) {
  size_t end = window_end(objects->payload_bytes, begin, objects_per_chunk, bytes_max, physical_bytes_for);
  assert(end - begin <= std::max(window_objects_max, objects_per_chunk));
  return {begin, end, slice(objects, begin, end)};
}

/// True if there was no space for the window of a request that is active, and it can be smaller.
inline bool may_shrink(const transfer_window& window, size_t objects_per_chunk, const context_ptr& context,
                       const error& failure) {
  return failure.code == errc::no_space && window.size() > objects_per_chunk && (!context || context->live());
}

} // namespace terrace
