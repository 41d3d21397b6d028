// Builders of frames for the tests of this room.
#pragma once

#include "protocol/frame_builder.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace terrace::protocol::test {

using bytes = std::vector<uint8_t>;

/// A frame whose body is `body_bytes` times the low byte of `id`, under a header that may lie.
inline bytes raw_frame(kind k, uint64_t id, size_t body_bytes, uint16_t fd_count, uint32_t length) {
  bytes out(header_bytes + body_bytes, static_cast<uint8_t>(id));
  auto header = write_header({length, k, fd_count, id});
  std::memcpy(out.data(), header.data(), header.size());
  return out;
}

inline bytes raw_frame(kind k, uint64_t id, size_t body_bytes, uint16_t fd_count = 0) {
  return raw_frame(k, id, body_bytes, fd_count, static_cast<uint32_t>(header_bytes + body_bytes));
}

/// A header without its body.
inline bytes raw_header(uint32_t length, kind k, uint16_t fd_count = 0) {
  return raw_frame(k, 1, 0, fd_count, length);
}

inline bytes hello_frame(const std::string& name, uint64_t id = 1) {
  frame_builder builder;
  auto& body = builder.start();
  builder.finish(kind::hello, id, wire::CreateHello(body, version, body.CreateString(name)));
  return {builder.bytes().begin(), builder.bytes().end()};
}

inline unique_fd any_descriptor() { return unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

inline bytes& operator+=(bytes& left, const bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

} // namespace terrace::protocol::test
