// The frames that the daemon and the process of a plugin (actors/remote/plugin_link.cpp, clients/python/terrace/remote) exchange over a
// socket that keeps messages apart (SOCK_SEQPACKET). Each message is one frame; payloads are in a buffer that both map. All numbers are
// little-endian and unsigned unless something else is said.
//
// The process begins with `hello`. Then it gets a request at a time and answers it before the next one comes.
//
//   request
//     offset  bytes  field
//          0      4  "TPL1"
//          4      1  verb
//          5      1  0
//          6      2  items, 1 to 128
//          8      8  number, which the answer repeats
//         16         the items
//   item
//          0      2  bytes of the key, 1 to 512
//          2      2  0
//          4      4  begin of the value in the buffer, a multiple of 4096
//          8      4  bytes of the value, or of the room for it; `exists`, `remove`: 0
//         12         the key: printable ASCII without spaces
//
//   answer
//          0      4  "TPL1"
//          4      1  verb of the request; `hello`
//          5      1  1: nothing of it was done, and the text says why; otherwise 0
//          6      2  items, as many as in the request; `hello`: 0
//          8      8  number of the request; `hello`: 0
//         16      2  bytes of the text, at most 1,024
//         18      6  0
//         24         a signed number of 8 bytes for each item
//                    text: why something failed. `hello`: the plugin's name and its version, with a space in between
//
//   verb          the number says
//   1  hello
//   2  exists     1: there is a value, 0: there is none
//   3  get        bytes of the value, which is in the buffer unless there are more than the room has; -1: there is none
//   4  put        1: the value is stored
//   5  make       the same for a key that must have none; 0: it has one
//   6  remove     1: there is none any more
//   any: -2: it failed; -3: there is no room, or no right to write
//
// A frame of another form is an error, and ends the process. Pure.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::remote {

constexpr size_t plugin_items_max = 128;
constexpr size_t plugin_key_bytes_max = 512;
constexpr size_t plugin_text_bytes_max = 1'024;
constexpr size_t plugin_frame_bytes_max = 64 << 10;
constexpr uint64_t plugin_buffer_bytes = 32 << 20; ///< at least three values
constexpr uint64_t plugin_value_alignment = 4'096;

enum class plugin_verb : uint8_t { hello = 1, exists, get, put, make, remove };

/// Numbers of an answer that are no counts.
constexpr int64_t plugin_absent = -1, plugin_failed = -2, plugin_no_room = -3;

class plugin_request {
 public:
  plugin_request() = default;
  plugin_request(plugin_verb verb, uint64_t number);

  /// False: a frame or the buffer has no room for one more. Precondition: a key of 1 to 512 bytes, at most `plugin_buffer_bytes`.
  bool add(std::string_view key, uint64_t bytes);
  size_t items() const { return offsets_.size(); }
  /// Where the value of this item is in the buffer.
  uint64_t offset(size_t item) const { return offsets_[item]; }
  plugin_verb verb() const { return verb_; }
  uint64_t number() const { return number_; }
  std::string_view frame() const { return frame_; }

 private:
  plugin_verb verb_{};
  uint64_t number_ = 0;
  uint64_t used_ = 0; ///< of the buffer
  std::vector<uint64_t> offsets_;
  std::string frame_;
};

struct plugin_greeting {
  bool refuses = false; ///< the plugin cannot be used; `text` says why
  std::string text;     ///< escaped
  std::string name, version;
};
/// Errors: `bad_request`, if the bytes are no greeting.
result<plugin_greeting> parse_plugin_greeting(std::span<const std::byte> frame);

struct plugin_answer {
  bool failed = false;          ///< as a whole
  std::vector<int64_t> numbers; ///< of the items
  std::string text;             ///< escaped
};
/// Errors: `bad_request`, if the bytes are no answer to this request.
result<plugin_answer> parse_plugin_answer(std::span<const std::byte> frame, const plugin_request& to);

} // namespace terrace::remote
