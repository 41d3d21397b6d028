// What a remote store sends: replies in pieces of any size to commands that wait for them. A finding is a crash, a
// result that depends on how the stream was cut, a byte beyond the memory that was given, or a value that passes
// although it is not the expected object, encrypted or not.
#include "index/payload_checksum.hpp"
#include "promise.hpp"
#include "remote/plugin_frames.hpp"
#include "remote/tls_stream.hpp"
#include "remote/valkey_connection.hpp"
#include "remote/value_cipher.hpp"
#include "remote/value_compression.hpp"
#include "remote/value_header.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace terrace;
using namespace terrace::remote;

namespace {

constexpr size_t payload_bytes = 5'000;
constexpr std::byte untouched{0x5a};

/// Everything that the stream says, received in pieces of this size.
std::string read(std::string_view stream, size_t piece) {
  valkey_connection server({.password = "secret"});
  std::vector<std::byte> memory(value_header_bytes + payload_bytes + 2, untouched);
  auto header = std::span(memory).subspan(1, value_header_bytes);
  auto payload = std::span(memory).subspan(1 + value_header_bytes, payload_bytes);
  std::string seen;
  bool asked = false;
  while (!stream.empty()) {
    if (server.ready() && !std::exchange(asked, true)) {
      server.read(1, "k", header, payload);
      server.exists(2, "k");
      server.read_text(3, "k");
      server.write_text_if_absent(4, "k", "v");
      server.read(5, "k", header, {});
      server.scan(6, "0", "k*", 10);
      server.length(7, "k");
      server.info(8, "memory");
      server.asking();
      server.slots(9);
    }
    auto area = server.receive_area();
    fuzz::promise(!area.empty() && area.size() <= 64 << 10, "the area is bounded and never empty");
    size_t count = std::min({area.size(), stream.size(), piece});
    std::memcpy(area.data(), stream.data(), count);
    stream.remove_prefix(count);
    auto taken = server.received(count);
    while (auto finished = server.next_finished())
      seen += std::to_string(finished->tag) + ":" + std::to_string(static_cast<int>(finished->result)) +
              finished->text + finished->why.text + std::to_string(finished->number) +
              std::to_string(finished->keys.size()) + "," +
              (finished->redirected ? finished->redirected->address : "") +
              std::to_string(slot_map(finished->slots).primaries().size()) + ";";
    if (!taken) {
      fuzz::promise(taken.error().text.find("secret") == std::string::npos, "no error contains the password");
      seen += "!" + taken.error().text;
      break;
    }
  }
  fuzz::promise(memory.front() == untouched && memory.back() == untouched,
                "nothing is written beside the memory");
  auto passes = verify(header.first<value_header_bytes>(), payload,
                       {.identity = {.epoch = 1}, .payload_bytes = payload_bytes});
  fuzz::promise(!passes, "bytes that nobody wrote are no object");
  return seen;
}

/// An encrypted value whose bytes were changed: three bytes of the input each name a place, and what is added there. An odd first byte
/// makes the checksum of the header right again. It passes only if nothing has changed.
void open_changed(std::string_view changes) {
  constexpr size_t sealed_bytes = 1'000;
  const std::vector<uint8_t> key(32, 1);
  static value_cipher cipher(key, {});
  const remote_identity object{.epoch = 1, .digest_width = value_cipher::name_bytes};
  std::vector<std::byte> value(value_header_bytes + sealed_bytes);
  auto header = std::span(value).first<value_header_bytes>();
  auto bytes = std::span(value).subspan(value_header_bytes);
  const std::vector<std::byte> payload(sealed_bytes, untouched);
  value_sealing sealing(cipher, {.identity = object, .generation = 1, .payload_bytes = sealed_bytes}, payload,
                        bytes, header);
  while (!sealing.done())
    sealing.advance(333);
  const auto written = value;
  const bool forges = !changes.empty() && (changes.front() & 1) != 0;
  for (changes.remove_prefix(std::min<size_t>(changes.size(), 1)); changes.size() >= 3;
       changes.remove_prefix(3)) {
    const size_t at = static_cast<uint8_t>(changes[0]) | static_cast<size_t>(static_cast<uint8_t>(changes[1]))
                                                             << 8;
    auto& byte = value[at % value.size()];
    byte = static_cast<std::byte>(static_cast<uint8_t>(byte) + static_cast<uint8_t>(changes[2]));
  }
  if (forges) {
    constexpr size_t checksum_at = 112;
    std::fill_n(header.begin() + checksum_at, 8, std::byte{});
    const uint64_t sum = payload_checksum(header);
    std::memcpy(header.data() + checksum_at, &sum, sizeof sum);
  }
  const bool same = value == written;
  value_opening opening(cipher, header, bytes,
                        {.identity = object, .payload_bytes = sealed_bytes, .encrypted = true});
  while (!opening.done())
    opening.advance(77);
  fuzz::promise(opening.verified().has_value() == same,
                "a value passes if and only if nobody has changed it");
  if (same)
    fuzz::promise(std::ranges::equal(bytes, payload), "it comes back as it was");
}

/// The same bytes as a compressed value, of a payload that is up to a piece longer or has more pieces: it is refused, or expanded within its
/// memory.
void expand(std::string_view stream) {
  static value_compressor zstd;
  for (size_t more : {size_t{0}, size_t{1'001}, value_compressor::piece_bytes + 3}) {
    std::vector<std::byte> memory(stream.size() + more + 2, untouched);
    std::memcpy(memory.data() + 1, stream.data(), stream.size());
    value_unpacking unpacking(zstd, std::span(memory).subspan(1, stream.size() + more), stream.size());
    while (!unpacking.done())
      unpacking.advance();
    fuzz::promise(memory.front() == untouched && memory.back() == untouched,
                  "nothing is expanded beside the memory");
  }
}

/// The same bytes as those of a server with TLS: they end the connection, or nothing has come yet.
std::string read_encrypted(std::string_view stream, size_t piece) {
  static const auto keys = *tls_keys::make({.name = "127.0.0.1"});
  tls_stream server(keys);
  std::vector<std::byte> area(1'000, untouched);
  while (!stream.empty()) {
    auto part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    auto taken = server.received(std::as_bytes(std::span(part)));
    auto count = taken ? server.read(area) : result<size_t>(0);
    fuzz::promise(!server.established() && (!count || *count == 0), "nobody without a key is let in");
    fuzz::promise(server.take_outgoing().size() < 64 << 10, "what is said to a server is bounded");
    if (!taken)
      return taken.error().text;
  }
  return {};
}

/// The same bytes as an answer of a plugin: it is exactly what was asked for, or an error.
void read_plugin(std::string_view frame) {
  const auto bytes = std::as_bytes(std::span(frame));
  for (auto verb :
       {plugin_verb::exists, plugin_verb::get, plugin_verb::put, plugin_verb::make, plugin_verb::remove}) {
    plugin_request to(verb, 1);
    to.add("k", 0);
    to.add("l", payload_bytes);
    if (auto answer = parse_plugin_answer(bytes, to))
      fuzz::promise(answer->numbers.size() == 2 && frame.size() >= 40, "there is a number for each item");
  }
  if (auto greeting = parse_plugin_greeting(bytes))
    fuzz::promise(frame.size() >= 24 && frame.size() <= 24 + plugin_text_bytes_max, "a greeting is bounded");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  open_changed(stream);
  expand(stream);
  read_plugin(stream);
  auto whole = read(stream, SIZE_MAX);
  auto cut = read(stream, size_t{data[0]} % 61 + 1);
  // The commands are sent once the server is ready, so a reply that comes along with the greeting answers none.
  auto end = std::min(whole.find('!'), cut.find('!'));
  if (end == std::string::npos)
    fuzz::promise(whole == cut, "results do not depend on the pieces");
  auto refused = read_encrypted(stream, SIZE_MAX),
       refused_in_pieces = read_encrypted(stream, size_t{data[0]} % 61 + 1);
  fuzz::promise(refused.empty() == refused_in_pieces.empty(), "a refusal does not depend on the pieces");
  return 0;
}
