// A socket, frames and descriptors: for what no sound client sends.
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::e2e {

using frame_bytes = std::vector<uint8_t>;

/// A frame around any body; `length` and `fd_count` of the header may lie.
frame_bytes frame_of(uint16_t kind, uint64_t request, std::span<const uint8_t> body = {},
                     std::optional<uint32_t> length = {}, uint16_t fd_count = 0);

/// A frame around a table: `build(FlatBufferBuilder&)` gives its offset.
template <class Build>
frame_bytes frame_with(protocol::kind kind, uint64_t request, Build&& build, uint16_t fd_count = 0) {
  protocol::frame_builder builder;
  auto& body = builder.start();
  builder.finish(kind, request, build(body), fd_count);
  return {builder.bytes().begin(), builder.bytes().end()};
}

frame_bytes hello_frame(uint64_t request = 1, uint32_t version = protocol::version);
frame_bytes status_frame(uint64_t request);

struct raw_answer {
  uint16_t kind = 0;
  uint64_t request = 0;
  std::vector<uint8_t> body;
  uint8_t error_code = 0; ///< of an error frame
  std::string error_text;
  bool is_error() const { return kind == static_cast<uint16_t>(protocol::kind::error); }
};

class raw_client {
 public:
  explicit raw_client(const std::string& socket);

  /// One sendmsg for all bytes; descriptors ride on the first. False when the daemon has closed.
  bool send(std::span<const uint8_t> bytes, std::span<const int> descriptors = {});

  /// Blocks for the next frame; nothing at the end of the stream.
  std::optional<raw_answer> receive();

  /// Sends hello and takes its answer in.
  bool greet();

  int descriptor() const { return socket_.get(); }
  void close() { socket_.reset(); }

 private:
  unique_fd socket_;
  std::vector<uint8_t> received_;
};

} // namespace terrace::e2e
