// Parses what a Redis server sends, RESP2 and RESP3: replies, and messages that it pushes.
//
//   while (true) {
//     auto next = reader.next();
//     if (!next) ... the server violates the protocol: close
//     if (next->what == reply_step::kind::more) { receive into reader.write_area(), then reader.commit(bytes); }
//     if (next->what == reply_step::kind::item) ... one item; an array is followed by its items
//     if (next->what == reply_step::kind::value) ... a long text follows: take_value, then receive the rest elsewhere
//     if (next->what == reply_step::kind::value_end) ... and it is complete
//   }
//
// A reply is complete with the step that says `last`. Texts of up to `text_bytes_max` stay in the reader's buffer; a
// longer one is announced, so that its owner receives it into its final place, or skips it. Pure; used by one thread
// at a time.
#pragma once

#include "base/error.hpp"
#include "protocol/resp/receive_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::resp {

struct reply_limits {
  size_t text_bytes_max = 4 << 10;         ///< longest text in the buffer; longer lines end the connection
  size_t buffer_bytes = 16 << 10;          ///< received at a time
  size_t items_max = 65'536;               ///< of one reply, with those in its arrays
  size_t depth_max = 8;                    ///< of arrays in arrays
  uint64_t value_bytes_max = 512ULL << 20; ///< of a longer text, as in Redis
};

enum class reply_type : uint8_t {
  simple,    ///< `text`
  error,     ///< `text`: a word in capitals, then what is wrong
  integer,   ///< `number`
  text,      ///< a bulk string; `text`, or a value
  null,      ///< of a text or an array
  boolean,   ///< `number`: 0 or 1
  real,      ///< `text`: a decimal, or inf, -inf, nan
  large,     ///< `text`: the digits of an integer of any size
  array,     ///< `items` follow, as for all below
  set,       ///<
  map,       ///< keys and values one after the other; `items` counts both
  attribute, ///< of the item behind it, in pairs like a map
  push,      ///< a message that answers no command
};

struct reply_step {
  enum class kind : uint8_t { more, item, value, value_end };
  kind what = kind::more;
  reply_type type = reply_type::null;
  bool last = false;     ///< the reply is complete; never with `value`, whose bytes come next
  size_t depth = 0;      ///< number of arrays around it
  std::string_view text; ///< valid until `write_area` or `next`
  int64_t number = 0;
  uint64_t items = 0;
  uint64_t value_bytes = 0;
};

class reply_reader {
 public:
  explicit reply_reader(const reply_limits& limits = {});

  /// Returns the free space of the buffer, never empty. Makes the text of the last step invalid.
  std::span<char> write_area() { return buffer_.write_area(); }
  void commit(size_t bytes) { buffer_.commit(bytes); }

  /// Errors (`bad_request`): what was expected. The reader cannot go on then. Precondition: no value is left.
  result<reply_step> next();

  // ---- a long text ----

  /// Takes at most `bytes_max` of the value's bytes out of the buffer, those that were received along with the reply.
  std::string_view take_value(uint64_t bytes_max = UINT64_MAX);
  /// Tells that `bytes` of the value were received elsewhere. Precondition: none of them are in the buffer.
  void value_received(uint64_t bytes);
  uint64_t value_left() const { return value_left_; }

  /// True in the middle of a reply.
  bool in_reply() const { return in_value_ || !open_.empty() || items_ != 0 || !buffer_.bytes().empty(); }

 private:
  struct aggregate {
    uint64_t left = 0;
    bool is_attribute = false;
  };

  result<std::optional<std::string_view>> line() const;
  result<reply_step> read_text(reply_type type, std::string_view line);
  result<reply_step> read_aggregate(reply_type type, std::string_view line);
  result<reply_step> plain(reply_type type, std::string_view line);
  result<reply_step> end_item(reply_step step, size_t bytes);
  bool close_item();

  reply_limits limits_;
  receive_buffer buffer_;
  size_t parsed_ = 0; ///< bytes in front of the buffer that the last step has shown
  std::vector<aggregate> open_;
  size_t items_ = 0; ///< of the reply that is being read
  bool in_value_ = false;
  reply_type value_type_ = reply_type::text;
  uint64_t value_left_ = 0;
};

} // namespace terrace::resp
