// Appends replies in both versions of the protocol to a text.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <vector>

namespace terrace::resp {

// Replies that wait to be sent: texts, and values where they lie in the arena, each kept by its owner until
// the kernel has taken its last byte.
//
// Pure; used by one thread at a time. At most one part is being sent: call `begin`, then `sent`.

class reply_queue {
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
  part begin(uint64_t bytes_most = part_bytes);
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

enum class version : uint8_t { resp2 = 2, resp3 = 3 };

inline void append_number(std::string& to, char mark, uint64_t value) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  to.push_back(mark);
  to.append(digits, end);
  to.append("\r\n");
}

inline void append_simple(std::string& to, std::string_view text) {
  to.push_back('+');
  to.append(text);
  to.append("\r\n");
}

/// Begins a value of `bytes`; its bytes and `end_of_value` follow.
inline void append_value_head(std::string& to, uint64_t bytes) { append_number(to, '$', bytes); }
constexpr std::string_view end_of_value = "\r\n";

inline void append_value(std::string& to, std::string_view bytes) {
  append_value_head(to, bytes.size());
  to.append(bytes);
  to.append(end_of_value);
}

inline void append_integer(std::string& to, uint64_t value) { append_number(to, ':', value); }
inline void append_array_head(std::string& to, uint64_t elements) { append_number(to, '*', elements); }

/// Begins a map of `pairs`; its keys and values follow one after the other. It is an array where the version
/// has no maps.
inline void append_map_head(std::string& to, version in, uint64_t pairs) {
  if (in == version::resp3)
    append_number(to, '%', pairs);
  else
    append_number(to, '*', 2 * pairs);
}

inline void append_null(std::string& to, version in) {
  to.append(in == version::resp3 ? "_\r\n" : "$-1\r\n");
}

/// `code` is the first word, by which clients tell errors apart. A text from a client may contain anything.
void append_error(std::string& to, std::string_view code, std::string_view text);

/// Appends an error with the word for the error of a request.
void append_failure(std::string& to, const error& why);

} // namespace terrace::resp
