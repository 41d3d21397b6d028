// Parses bytes of a Redis client into commands: RESP arrays of bulk strings, and inline commands (a line of words).
//
//   while (true) {
//     auto next = reader.next();
//     if (!next) ... the client violates the protocol: send the text, close
//     if (next->what == reader_step::more) { receive into reader.write_area(), then reader.commit(bytes); }
//     if (next->what == reader_step::command) ... next->words
//     if (next->what == reader_step::value) ... a long word follows: take_value, then receive the rest
//     elsewhere
//   }
//
// A word of up to `word_bytes_max` stays in the reader's buffer. A longer one is announced, so that its owner receives
// it into its final place, or skips it. Pure; used by one thread at a time.
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

struct reader_limits {
  size_t words_max = 65'536;               ///< of one command
  size_t word_bytes_max = 16 << 10;        ///< longest word in the buffer
  size_t buffer_bytes = 64 << 10;          ///< received at a time
  size_t command_bytes_max = 1 << 20;      ///< of the words of a command that are in the buffer
  uint64_t value_bytes_max = 512ULL << 20; ///< of a longer word: more ends the connection, as in Redis
};

struct reader_step {
  enum class kind : uint8_t {
    more,    ///< another part must be received first
    command, ///< complete; all its words, or those behind its last long one
    value,   ///< a long word begins; `words`: those in front of it, as in `command`
  };
  kind what = kind::more;
  std::span<const std::string_view> words; ///< valid until `write_area` or `next`
  bool continued = false;                  ///< a long word of the same command came before `words`
  uint64_t value_bytes = 0;
  size_t words_left = 0; ///< words behind the long one
};

class command_reader {
 public:
  explicit command_reader(const reader_limits& limits = {});

  /// Returns the free space of the buffer, never empty after `more`. Makes the words of earlier steps invalid.
  std::span<char> write_area() { return buffer_.write_area(); }
  void commit(size_t bytes) { buffer_.commit(bytes); }

  /// Errors (`bad_request`): the text of a reply that says what is wrong. The reader cannot go on then.
  result<reader_step> next();

  // ---- a long word ----

  /// Takes at most `bytes_max` of the long word's bytes out of the buffer, those that were received along
  /// with the command.
  std::string_view take_value(uint64_t bytes_max = UINT64_MAX);
  /// Tells that `bytes` of the long word were received elsewhere.
  void value_received(uint64_t bytes);
  uint64_t value_left() const { return value_left_; }

  /// True in the middle of a command.
  bool in_command() const { return state_ != state::idle || !buffer_.bytes().empty(); }

 private:
  enum class state : uint8_t { idle, words, value, value_end };
  struct place {
    size_t at = 0; ///< offset in the buffer
    size_t bytes = 0;
  };
  /// Returns a line without its end, from `at_` on; nullopt: it has not come completely.
  result<std::optional<std::string_view>> line();
  result<std::optional<uint64_t>> number(char mark, const char* text, uint64_t most);
  result<reader_step> read_words();
  result<reader_step> read_inline();
  reader_step take(reader_step::kind what);

  reader_limits limits_;
  receive_buffer buffer_;
  size_t at_ = 0; ///< offset in the buffer of the bytes to parse next
  state state_ = state::idle;
  size_t words_left_ = 0;
  std::optional<uint64_t> length_; ///< length of the word whose bytes come next
  std::vector<place> places_;
  std::vector<std::string_view> words_;
  uint64_t value_left_ = 0;
  bool continued_ = false;
};

} // namespace terrace::resp
