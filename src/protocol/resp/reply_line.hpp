// Replies that wait to be sent: texts, and values where they lie in the arena, each kept by its owner until
// the kernel has taken its last byte.
//
// Pure; used by one thread at a time. At most one part is being sent: call `begin`, then `sent`.
#pragma once

#include "base/keep_alive.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/uio.h>

namespace terrace::resp {

class reply_line {
 public:
  static constexpr size_t areas_max = 64; ///< per part
  static constexpr uint64_t part_bytes =
      2 << 20;                             ///< sent at a time, so that a client that does not read is noticed
  static constexpr size_t values_max = 16; ///< that wait at a time; see `has_room`
  static constexpr uint64_t bytes_max = 128 << 10; ///< of texts that wait; see `has_room`

  /// Returns the text to which small replies are appended.
  std::string& text();
  /// `owner` keeps the bytes. Texts appended later are sent after them.
  void add_value(std::span<const std::byte> bytes, keep_alive owner);

  bool empty() const { return pieces_.empty(); }
  size_t values() const { return values_; }
  /// True if another reply may be added. A client that does not read keeps no more than the bounds and one reply.
  bool has_room() const { return values_ < values_max && text_bytes() < bytes_max; }
  uint64_t text_bytes() const;

  /// The bytes that are sent next. Valid until `sent`; with `owners` it outlives this object.
  struct part {
    std::vector<iovec> areas;
    std::vector<keep_alive> owners;
    uint64_t bytes = 0;
  };
  part begin();
  void sent(uint64_t bytes);

 private:
  struct piece {
    std::shared_ptr<std::string> text; ///< null: this piece is a value
    std::span<const std::byte> value;
    keep_alive owner;
    size_t size() const { return text ? text->size() : value.size(); }
    const void* data() const {
      return text ? static_cast<const void*>(text->data()) : static_cast<const void*>(value.data());
    }
  };
  std::deque<piece> pieces_;
  size_t being_sent_ = 0; ///< pieces of the part; nothing may be appended to their texts
  size_t first_sent_ = 0; ///< bytes of the first piece that were already sent
  size_t values_ = 0;
};

} // namespace terrace::resp
