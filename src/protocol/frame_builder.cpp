#include "protocol/frame_builder.hpp"

#include <cassert>

namespace terrace::protocol {

void frame_builder::seal(kind k, uint64_t request_id, uint16_t fd_count) {
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

void frame_builder::shrink(size_t initial_bytes) {
  if (builder_.GetSize() > initial_bytes)
    builder_ = flatbuffers::FlatBufferBuilder(initial_bytes);
  bytes_ = {};
}

} // namespace terrace::protocol
