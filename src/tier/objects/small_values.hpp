// Copies small values of host memory on the thread of the caller: no message is sent, and nothing is held.
//
//   if (values.read(index, memory, batch.objects->keys, wanted)) ... values.of(key) ... values.ids()
//
// A value is copied while its tier cannot change its index, so that it stays there until its last byte is
// copied. The tier waits for that, so the bytes copied at a time are bounded. Used by one thread at a time.
#pragma once

#include "index/object_header.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/objects/tier_index.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

class small_values {
 public:
  static constexpr uint64_t bytes_max = 16 << 10; ///< for all values of a read

  /// `copies` is parallel to the keys: the number of replies that contain the value; 0: it must only be
  /// present. Returns false if some are not present, they are too large, or the tier is changing its index.
  bool read(const tier_index& index, const segmented_arena& memory, std::span<const object_key> keys,
            std::span<const uint32_t> copies) {
    ids_.assign(keys.size(), object_id{});
    ends_.clear();
    bytes_.clear();
    bool all = true;
    bool read = index.table().read([&](const resident_table& table) {
      index.find(keys, ids_);
      uint64_t bytes = 0;
      for (size_t i = 0; i < keys.size() && all; ++i) {
        const resident* object = ids_[i] == object_id{} ? nullptr : table.get(ids_[i]);
        all = object != nullptr && (bytes += object->payload_bytes() * copies[i]) <= bytes_max;
        if (all && copies[i] != 0)
          copy(memory, *object);
        ends_.push_back(bytes_.size());
      }
    });
    return read && all;
  }

  /// Returns a value of the last read, which must have returned true.
  std::string_view of(size_t key) const {
    size_t begin = key == 0 ? 0 : ends_[key - 1];
    return std::string_view(bytes_).substr(begin, ends_[key] - begin);
  }
  const std::vector<object_id>& ids() const { return ids_; }

 private:
  void copy(const segmented_arena& memory, const resident& object) {
    const std::byte* payload = memory.at(object.offset() + object_header_bytes);
    bytes_.append(reinterpret_cast<const char*>(payload), object.payload_bytes());
  }

  std::vector<object_id> ids_;
  std::vector<size_t> ends_; ///< ends in `bytes_`, parallel to the keys
  std::string bytes_;
};

} // namespace terrace
