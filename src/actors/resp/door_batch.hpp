// Commands of a Redis client that are served together: they read, or write, or remove some keys at a time.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/error.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::actors {

class door_batch {
 public:
  enum class work : uint8_t { none, read, write, remove, count };
  static constexpr size_t keys_max = 32; ///< keys whose objects may be held at a time
  static constexpr size_t items_max = 256;
  static constexpr size_t text_bytes_max = 16 << 10; ///< bytes of ready replies

  /// A part of the replies, in the order of the commands.
  struct item {
    enum class kind : uint8_t {
      text,    ///< a ready reply is in `text`
      value,   ///< the value of the key, a null, or an error
      element, ///< an element of an array: a value or a null
      count,   ///< the key counts if it exists or was removed
      sum,     ///< the end of a counting command: the number
      stored,  ///< the end of a command that stored one value
      part,    ///< one of several values that a command stores
      parts,   ///< the end of such a command
      forget,  ///< a command ends early: its number or failure is not sent
      dbsize,
      info,
    };
    kind what = kind::text;
    size_t key = 0;
    std::string text{};
  };

  work what = work::none;
  std::shared_ptr<object_batch> objects = std::make_shared<object_batch>();
  std::vector<std::string_view> contents; ///< contents of the stored values, parallel to the objects
  std::vector<item> items;
  size_t text_bytes = 0;

  /// True if a key may be added for this work.
  bool takes(work more) const {
    return (what == work::none || what == more) && objects->size() < keys_max && has_room();
  }
  bool has_room() const { return items.size() < items_max && text_bytes < text_bytes_max; }
  /// Adds a ready reply.
  void say(std::string_view text) {
    if (items.empty() || items.back().what != item::kind::text)
      items.push_back({});
    items.back().text.append(text);
    text_bytes += text.size();
  }
  /// Returns the number of the key; each key is in the batch once.
  size_t add(work more, const object_key& key) {
    what = more;
    for (size_t i = 0; i < objects->size(); ++i)
      if (objects->keys[i] == key)
        return i;
    objects->keys.push_back(key);
    objects->parents.emplace_back();
    objects->payload_bytes.push_back(0);
    contents.emplace_back();
    return objects->size() - 1;
  }
  /// Sets the value of a key. The last one counts, because nobody sees those before it.
  void set(size_t key, std::string_view bytes) {
    contents[key] = bytes;
    objects->payload_bytes[key] = bytes.size();
  }
  bool empty() const { return items.empty(); }
};

} // namespace terrace::actors
