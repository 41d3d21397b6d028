// A socket, frames and descriptors: a client without libterrace, for messages that no correct client sends
// and for bytes that must be equal on both sides of a comparison. Works on the caller's thread.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace terrace::test {

using frame_bytes = std::vector<uint8_t>;

/// Returns a frame around any body; `length` and `fd_count` of the header may be wrong.
frame_bytes frame_of(uint16_t kind, uint64_t request, std::span<const uint8_t> body = {},
                     std::optional<uint32_t> length = {}, uint16_t fd_count = 0);

/// Returns a frame around a table: `build(FlatBufferBuilder&)` returns its offset.
template <class Build>
frame_bytes frame_with(protocol::kind kind, uint64_t request, Build&& build, uint16_t fd_count = 0) {
  protocol::frame_builder builder;
  auto& body = builder.start();
  builder.finish(kind, request, build(body), fd_count);
  return {builder.bytes().begin(), builder.bytes().end()};
}

frame_bytes hello_frame(uint64_t request = 1, uint32_t version = protocol::version);
frame_bytes status_frame(uint64_t request);

/// A received frame; descriptors that came with it are closed.
struct received {
  protocol::kind kind{};
  uint64_t id = 0;
  std::vector<uint8_t> body; ///< includes the padding

  bool is_error() const { return kind == protocol::kind::error; }

  /// Throws if the body is not such a table.
  template <class T>
  const T& as() const {
    auto table = protocol::parse<T>(body);
    if (!table)
      throw std::runtime_error(table.error().text);
    return **table;
  }
  /// `ok` for anything but an error frame.
  errc code() const { return is_error() ? static_cast<errc>(as<wire::Error>().code()) : errc::ok; }
  std::string text() const { return is_error() ? as<wire::Error>().text()->str() : ""; }
};

class raw_client {
 public:
  explicit raw_client(unique_fd socket) : socket_(std::move(socket)) {}

  /// Connects to a listening socket, which need not have accepted yet. Throws if nobody listens.
  explicit raw_client(const std::string& path);

  /// Sends all bytes with one sendmsg; descriptors travel with the first byte. Returns false if the daemon
  /// has closed.
  bool send(std::span<const uint8_t> bytes, std::span<const int> descriptors = {});

  /// `build(FlatBufferBuilder&)` returns the offset of the request's table.
  template <class Build>
  bool send(protocol::kind what, uint64_t request, Build&& build, int descriptor = -1) {
    std::span<const int> descriptors(&descriptor, descriptor < 0 ? 0 : 1);
    return send(
        frame_with(what, request, std::forward<Build>(build), static_cast<uint16_t>(descriptors.size())),
        descriptors);
  }

  /// Blocks until the next frame; returns nothing at the end of the stream.
  std::optional<received> receive();

  /// Returns the next frame that has arrived by now, if any.
  std::optional<received> next();

  /// Returns whether the daemon has closed; reads what comes before that.
  bool ended();

  /// Sends hello and receives its answer.
  bool greet();

  int descriptor() const { return socket_.get(); }
  unique_fd release() { return std::move(socket_); }
  void close() { socket_.reset(); }

 private:
  bool read_some(int flags);
  std::optional<received> next_of_decoded();

  unique_fd socket_;
  protocol::frame_decoder decoder_{{.accepts = protocol::direction::answers}};
  bool ended_ = false;
};

} // namespace terrace::test
