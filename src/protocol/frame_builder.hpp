// Builds frames without copying their bodies: a FlatBuffer grows from its end towards its beginning, so the
// header is written in front of the finished body, in the same buffer.
//
//   auto& body = builder.start();
//   builder.finish(kind::release, id, wire::CreateRelease(body, body.CreateVector(lease)));
//   send(builder.bytes());
#pragma once

#include "base/error.hpp"
#include "protocol/frame.hpp"
#include "protocol/terrace_generated.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <flatbuffers/flatbuffers.h>
#include <span>
#include <vector>

namespace terrace::protocol {

/// Reusable: memory grows to the largest frame built and is kept until `shrink`. Used by one thread at a
/// time.
class frame_builder {
 public:
  explicit frame_builder(size_t initial_bytes = 1024) : builder_(initial_bytes) {}

  /// Drops the previous frame and starts an empty body.
  flatbuffers::FlatBufferBuilder& start() {
    builder_.Clear();
    builder_.Align(frame_alignment); // makes padding at the end of the finished body unnecessary
    return builder_;
  }

  /// Returns the body that was started.
  flatbuffers::FlatBufferBuilder& body() { return builder_; }

  /// Completes the frame around the body's root. For a length above `frame_bytes_max`, `bytes()` is empty.
  template <class T>
  void finish(kind k, uint64_t request_id, flatbuffers::Offset<T> root, uint16_t fd_count = 0) {
    builder_.Finish(root);
    seal(k, request_id, fd_count);
  }

  /// Returns the whole frame; valid until the next `start`.
  std::span<const uint8_t> bytes() const { return bytes_; }

  /// Releases memory above the initial size.
  void shrink(size_t initial_bytes = 1024);

 private:
  void seal(kind k, uint64_t request_id, uint16_t fd_count);

  flatbuffers::FlatBufferBuilder builder_;
  std::span<const uint8_t> bytes_;
};

/// Builds a vector of structs with elements of 8 bytes. FlatBuffers aligns the elements only if there are
/// any, but readers of other languages check the alignment of empty vectors too.
template <class Struct>
flatbuffers::Offset<flatbuffers::Vector<const Struct*>> create_structs(flatbuffers::FlatBufferBuilder& body,
                                                                       const std::vector<Struct>& elements) {
  body.Align(frame_alignment);
  return body.CreateVectorOfStructs(elements);
}

/// Builds such a vector part by part: call `start`, then `push` for each part, the last one first, then
/// `end`. Nothing else may be built in between.
template <class Struct, class Builder>
void start_structs(Builder& body, size_t elements) {
  body.Align(frame_alignment);
  size_t words = elements * sizeof(Struct) / alignof(Struct);
  // FlatBuffers 23 and later take the alignment too.
  if constexpr (requires { body.StartVector(words, alignof(Struct), alignof(Struct)); })
    body.StartVector(words, alignof(Struct), alignof(Struct));
  else
    body.StartVector(words, alignof(Struct));
}
template <class Struct>
void push_structs(flatbuffers::FlatBufferBuilder& body, const std::vector<Struct>& part) {
  if (!part.empty())
    body.PushBytes(reinterpret_cast<const uint8_t*>(part.data()), part.size() * sizeof(Struct));
}
template <class Struct>
flatbuffers::Offset<flatbuffers::Vector<const Struct*>> end_structs(flatbuffers::FlatBufferBuilder& body,
                                                                    size_t elements) {
  return flatbuffers::Offset<flatbuffers::Vector<const Struct*>>(body.EndVector(elements));
}

// The frame of kind `error`.

/// Writes the answer to a request that failed, or, for request 0, the daemon's last words to a client.
inline void write_error(frame_builder& frame, uint64_t request_id, const error& why) {
  auto& body = frame.start();
  frame.finish(kind::error, request_id,
               wire::CreateErrorDirect(body, static_cast<uint8_t>(why.code), why.text.c_str()));
}

inline void frame_builder::seal(kind k, uint64_t request_id, uint16_t fd_count) {
  uint64_t length = header_bytes + builder_.GetSize();
  if (length > frame_bytes_max) {
    bytes_ = {};
    return;
  }
  assert(length % frame_alignment == 0);
  auto header = write_header({static_cast<uint32_t>(length), k, fd_count, request_id});
  builder_.PushFlatBuffer(header.data(), header.size());
  bytes_ = {builder_.GetBufferPointer(), builder_.GetSize()};
}

inline void frame_builder::shrink(size_t initial_bytes) {
  if (builder_.GetSize() > initial_bytes)
    builder_ = flatbuffers::FlatBufferBuilder(initial_bytes);
  bytes_ = {};
}

} // namespace terrace::protocol
