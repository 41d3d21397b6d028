// What a Redis client sends: commands in pieces of any size, with long words taken or skipped. A finding is a crash, a
// command that depends on how it was cut into pieces, or a buffer beyond its bound.
#include "actors/resp/redis_session.hpp"
#include "protocol/resp/command_reader.hpp"
#include "protocol/resp/commands.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace terrace::resp;

namespace {

constexpr reader_limits bounds{.words_max = 64,
                               .word_bytes_max = 128,
                               .buffer_bytes = 256,
                               .command_bytes_max = 2048,
                               .value_bytes_max = 1 << 20};

/// Everything that the stream says, in pieces of this size, and the replies to what needs no cache.
std::string read(std::string_view stream, size_t piece) {
  command_reader reader(bounds);
  redis_session client("secret", 1);
  std::string seen;
  while (true) {
    auto step = reader.next();
    if (!step)
      return seen + "!" + step.error().text;
    if (step->what == reader_step::kind::more) {
      if (stream.empty())
        return seen;
      auto area = reader.write_area();
      if (area.empty() || area.size() > 2 * bounds.command_bytes_max)
        std::abort();
      size_t count = std::min({area.size(), stream.size(), piece});
      std::memcpy(area.data(), stream.data(), count);
      reader.commit(count);
      stream.remove_prefix(count);
      continue;
    }
    if (step->words.size() > bounds.words_max)
      std::abort();
    for (std::string_view word : step->words)
      seen += "[" + std::string(word) + "]";
    if (step->what == reader_step::kind::command) {
      if (!step->continued) {
        const command_row* row = find_command(step->words.front());
        std::string reply;
        if (client.may_call(row, step->words.front(), step->words.size(), reply) && row->first_key == 0 &&
            row->command != command::dbsize)
          client.serve(row->command, step->words, reply, [] { return std::string("info"); });
        seen += reply;
      }
      continue;
    }
    seen += "<" + std::to_string(step->value_bytes) + ">";
    seen += reader.take_value();
    while (reader.value_left() != 0) {
      if (stream.empty())
        return seen;
      auto count = static_cast<size_t>(std::min<uint64_t>({stream.size(), piece, reader.value_left()}));
      seen += stream.substr(0, count);
      stream.remove_prefix(count);
      reader.value_received(count);
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto whole = read(stream, SIZE_MAX);
  auto cut = read(stream, size_t{data[0]} % 61 + 1);
  // What is wrong is seen as early as it can be, so of a wrong stream only what is before is the same.
  auto end = std::min(whole.find('!'), cut.find('!'));
  if (end == std::string::npos && whole != cut)
    std::abort();
  return 0;
}
