// A transfer processes its objects in windows, so that it holds at most its share of an arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

/// The end of the window that begins at `begin`: whole chunks of `objects_per_chunk` objects, at most
/// `bytes_max` bytes, but at least one chunk. `begin` is a multiple of `objects_per_chunk`. `held_bytes`: what an object
/// of so many bytes takes of the arena.
template <class HeldBytes>
size_t window_end(std::span<const uint64_t> object_bytes, size_t begin, size_t objects_per_chunk,
                  uint64_t bytes_max, HeldBytes held_bytes) {
  uint64_t bytes = 0;
  size_t end = begin;
  while (end < object_bytes.size()) {
    for (size_t i = 0; i < objects_per_chunk; ++i)
      bytes += held_bytes(object_bytes[end + i]);
    if (end != begin && bytes > bytes_max)
      break;
    end += objects_per_chunk;
  }
  return end;
}

} // namespace terrace
