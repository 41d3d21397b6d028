// The frame of kind `error`.
#pragma once

#include "base/error.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/terrace_generated.h"

namespace terrace::protocol {

/// Writes the answer to a request that failed, or, for request 0, the daemon's last words to a client.
inline void write_error(frame_builder& frame, uint64_t request_id, const error& why) {
  auto& body = frame.start();
  frame.finish(kind::error, request_id,
               wire::CreateErrorDirect(body, static_cast<uint8_t>(why.code), why.text.c_str()));
}

} // namespace terrace::protocol
